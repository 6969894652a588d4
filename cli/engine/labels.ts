import { z } from "zod";
import { EngineError } from "../../policy/errors.ts";
import type { Engine } from "./engine.ts";

type Labels = Readonly<Record<string, string>>;

/** Kinds of things that carry our labels, with the engine's words to list and to read them. */
const kinds = {
  container: { list: ["ps", "--all"], inspect: "container", name: "{{.Name}}", labels: "{{json .Config.Labels}}" },
  image: { list: ["images", "--no-trunc"], inspect: "image", name: "{{json .RepoTags}}", labels: "{{json .Config.Labels}}" },
  volume: { list: ["volume", "ls"], inspect: "volume", name: "{{.Name}}", labels: "{{json .Labels}}" },
} as const;

export type Labelled = { id: string; name: string; labels: Labels };

const labelsSchema = z.record(z.string(), z.string()).nullable();

/** Lists the containers, images or volumes that carry `label`. `name` is what the engine calls them, for an image its tags as JSON. */
export async function listLabelled(engine: Engine, kind: keyof typeof kinds, label: string): Promise<Labelled[]> {
  const { list, inspect, name, labels } = kinds[kind];
  const listed = await engine.client.call([...list, "--quiet", "--filter", `label=${label}`]);
  if (listed.exitCode !== 0) throw new EngineError({ what: `${engine.kind} cannot list ${kind}s: ${listed.stderr.trim()}`, fix: "run `agentbox doctor`" });
  const ids = [...new Set(listed.stdout.split("\n").filter((id) => id !== ""))];
  const found = await Promise.all(
    ids.map(async (id) => {
      // One may have gone since it was listed.
      const result = await engine.client.call([inspect, "inspect", "--format", `${name}\t${labels}`, id]);
      const [shown = "", text = "null"] = result.stdout.trim().split("\t");
      return result.exitCode === 0 ? [{ id, name: shown.replace(/^\//, ""), labels: labelsSchema.parse(JSON.parse(text)) ?? {} }] : [];
    }),
  );
  return found.flat();
}
