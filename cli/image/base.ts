import { access } from "node:fs/promises";
import path from "node:path";
import { EngineError } from "../../policy/errors.ts";
import { createEngineClient } from "../engine/client.ts";
import type { Engine } from "../engine/engine.ts";
import { hasImage, pullImage } from "../engine/images.ts";
import type { Report } from "../ui/report.ts";
import { defaultBase } from "./settings.ts";

const localBase = "agentbox-base:local";
const localBaseLimitMs = 1_200_000;

export type BaseRequest = {
  engine: Engine;
  /** Top level of the installation. */
  root: string;
  /** `local`, or the reference of an image. */
  base: string;
  /** Fetches or makes the base anew although there is one. */
  renew: boolean;
  env: Readonly<Record<string, string>>;
  report: Report;
  signal: AbortSignal;
};

/**
 * Makes sure that the engine has the base to build on, and returns its name. When the registry of the
 * default base cannot be reached, a base made on this machine takes its place, and the start says so.
 */
export async function provideBase(request: BaseRequest): Promise<string> {
  const { engine, base, renew, report, signal } = request;
  if (base === "local") return await provideLocalBase(request, renew);
  const present = await hasImage(engine, base);
  if (present && !renew) return base;
  const failure = await pullImage(engine, base, signal);
  if (failure === undefined) return base;
  if (present) {
    report({ event: "warning", step: "image", text: `${base} could not be fetched anew (${failure}); the one at hand is used` });
    return base;
  }
  if (base !== defaultBase) {
    throw new EngineError({ what: `${base} cannot be pulled: ${failure}`, expected: "an image of Debian 12 with Node 24", fix: "correct --base, or use --base local" });
  }
  report({ event: "warning", step: "image", text: `${base} cannot be pulled (${failure}); the image is built on a base made here, as with --base local` });
  return await provideLocalBase(request, false);
}

async function provideLocalBase({ engine, root, env, report, signal }: BaseRequest, renew: boolean): Promise<string> {
  if (!renew && (await hasImage(engine, localBase))) return localBase;
  const script = path.join(root, "scripts", "base-image");
  await access(script);
  const lines: string[] = [];
  const argv = ["--engine", engine.client.program, "--tag", localBase, ...(renew ? ["--force"] : [])];
  const result = await createEngineClient(script).call(argv, {
    timeoutMs: localBaseLimitMs,
    signal,
    env,
    onLine: (line) => {
      lines.push(line);
      if (line.startsWith("base image: ")) report({ event: "warning", step: "image", text: line });
    },
  });
  signal.throwIfAborted();
  if (result.exitCode === 0) return localBase;
  throw new EngineError({
    // Its last line is its error; what its programs printed stands before that.
    what: `the base image could not be made here: ${lines.findLast((line) => line.trim() !== "")?.trim() ?? "no reason was given"}`,
    expected: "an image registry or a Debian archive that can be reached",
    fix: "see to the network, or name an image at hand with --base IMAGE",
  });
}
