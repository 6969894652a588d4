import { readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { readBoxFile } from "../engine/probe.ts";
import type { Engine } from "../engine/engine.ts";
import { parseBoxResolvers, requireUpstreams } from "./host-resolvers.ts";
import { writeWhole } from "./whole-file.ts";

/** By kind and version of the engine: its machine, and what it writes into boxes, changes with these only. */
const cacheSchema = z.record(z.string(), z.array(z.ipv4().or(z.ipv6())).min(1));

/**
 * Asks an engine that runs in a machine of its own for its resolvers, by a look into a box on its default
 * network, and remembers the answer. Throws EngineError where it has none.
 */
export async function askEngineResolvers(engine: Engine, image: string, agentboxHome: string): Promise<readonly string[]> {
  const file = path.join(agentboxHome, "engine-resolvers.json");
  const key = `${engine.kind} ${engine.version}`;
  const known = await readCache(file);
  const remembered = known[key];
  if (remembered !== undefined) return remembered;
  const found = requireUpstreams(parseBoxResolvers(await readBoxFile(engine, image, "/etc/resolv.conf")));
  await writeWhole(file, `${JSON.stringify({ [key]: found })}\n`, 0o600);
  return found;
}

/** A cache that is missing or broken is asked for anew. */
async function readCache(file: string): Promise<z.infer<typeof cacheSchema>> {
  try {
    return cacheSchema.parse(JSON.parse(await readFile(file, "utf8")));
  } catch {
    return {};
  }
}
