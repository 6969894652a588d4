import { readFile, rm } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { writeWhole } from "./whole-file.ts";

const statusSchema = z.strictObject({
  version: z.literal(1),
  /** When it began, RFC 3339. */
  since: z.string(),
  /** One sentence for each trouble: a configuration that was not taken, with its place. */
  degraded: z.array(z.string()).min(1),
});

export type SessionStatus = z.infer<typeof statusSchema>;

const FILE = "status.json";

/** Reads what the command line of a running box could not do for it; undefined when all is well. `directory` is the session's. */
export async function readSessionStatus(directory: string): Promise<SessionStatus | undefined> {
  try {
    return statusSchema.parse(JSON.parse(await readFile(path.join(directory, FILE), "utf8")));
  } catch {
    return undefined;
  }
}

/** Writes down the troubles of a session; none takes the file away. */
export async function writeSessionStatus(directory: string, degraded: readonly string[]): Promise<void> {
  const file = path.join(directory, FILE);
  if (degraded.length === 0) return await rm(file, { force: true });
  await writeWhole(file, JSON.stringify({ version: 1, since: new Date().toISOString(), degraded }), 0o600);
}
