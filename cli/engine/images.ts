import { z } from "zod";
import { EngineError } from "../../policy/errors.ts";
import type { Engine } from "./engine.ts";
import { listLabelled } from "./labels.ts";

/** A registry that says nothing for this long cannot be reached. */
const firstAnswerMs = 30_000;
const pullLimitMs = 900_000;

/** Tells whether the engine has an image. */
export async function hasImage(engine: Engine, reference: string): Promise<boolean> {
  const result = await engine.client.call(["image", "inspect", "--format", "{{.Id}}", reference]);
  return result.exitCode === 0;
}

/** Pulls an image from its registry; the result is undefined, or why it could not be had. */
export async function pullImage(engine: Engine, reference: string, signal?: AbortSignal): Promise<string | undefined> {
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), firstAnswerMs);
  const signals = signal === undefined ? [silence.signal] : [silence.signal, signal];
  try {
    const result = await engine.client.call(["pull", reference], {
      timeoutMs: pullLimitMs,
      signal: AbortSignal.any(signals),
      onLine: () => clearTimeout(timer),
    });
    signal?.throwIfAborted();
    if (silence.signal.aborted) return `the registry did not answer within ${firstAnswerMs / 1_000} s`;
    return result.exitCode === 0 ? undefined : lastLine(result.stderr);
  } catch (error) {
    if (error instanceof EngineError) return error.complaints[0]?.what ?? error.message;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** An image that a command line of ours built. `tags` is empty once a newer one has taken its name. */
export type BuiltImage = { id: string; tags: readonly string[]; hash: string; home: string };

/** Lists the images that command lines of ours built. */
export async function listBuiltImages(engine: Engine): Promise<BuiltImage[]> {
  const images = await listLabelled(engine, "image", "agentbox.hash");
  return images.map(({ id, name, labels }) => ({
    id,
    tags: z.array(z.string()).nullable().parse(JSON.parse(name)) ?? [],
    hash: labels["agentbox.hash"] ?? "",
    home: labels["agentbox.home"] ?? "",
  }));
}

/** Removes an image with all its tags; false when something still uses it. */
export async function removeImage(engine: Engine, { id, tags }: BuiltImage): Promise<boolean> {
  const result = await engine.client.call(["rmi", ...(tags.length === 0 ? [id] : tags)], { timeoutMs: 60_000 });
  return result.exitCode === 0;
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
