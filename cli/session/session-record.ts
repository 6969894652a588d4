import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { TOPOLOGIES } from "../../policy/config-schema.ts";
import { engineKinds } from "../engine/engine.ts";
import { writeWhole } from "./whole-file.ts";
import { ownerSchema } from "./owner.ts";

/** What a session writes down before it makes anything, so that another start can remove it all, and what is known of it afterwards. */
const recordSchema = z.strictObject({
  version: z.literal(2),
  id: z.string().regex(/^[0-9a-z-]+$/),
  owner: ownerSchema,
  engine: z.enum(engineKinds),
  /** The container that the agent runs in. */
  container: z.string(),
  topology: z.enum(TOPOLOGIES),
  /** The container that holds the namespace; null where it is the agent's own. */
  holder: z.string().nullable(),
  firewall: z.boolean(),
  project: z.string(),
  agent: z.string(),
  /** RFC 3339. */
  started: z.string(),
  /** Null while it runs; the code is null where nobody saw it. */
  ended: z.strictObject({ time: z.string(), exitCode: z.int().nullable() }).nullable(),
});

export type SessionRecord = z.infer<typeof recordSchema>;

/** A session's directory, which its record lies in. */
export type RecordedSession = { directory: string; record: SessionRecord };

const RECORD_FILE = "session.json";

/** Returns the directory that holds the directories of all sessions. */
export function findSessions(agentboxHome: string): string {
  return path.join(agentboxHome, "sessions");
}

/** Reads the records of all sessions, running or ended, the newest first; a directory without a readable one is for `sweepBroken`. */
export async function readSessions(agentboxHome: string): Promise<RecordedSession[]> {
  const names = await readdir(findSessions(agentboxHome)).catch(() => []);
  const found = await Promise.all(
    names.map(async (name) => {
      const directory = path.join(findSessions(agentboxHome), name);
      const record = await readRecord(directory);
      return record === undefined || record === "foreign" ? [] : [{ directory, record }];
    }),
  );
  return found.flat().toSorted((a, b) => (a.record.id < b.record.id ? 1 : -1));
}

/** Reads a session's record; undefined when it is missing or broken, `foreign` when a newer command line wrote it. */
export async function readRecord(directory: string): Promise<SessionRecord | "foreign" | undefined> {
  const json = parseJson(await readFile(path.join(directory, RECORD_FILE), "utf8").catch(() => ""));
  const answer = recordSchema.safeParse(json);
  if (answer.success) return answer.data;
  return z.object({ version: z.number().gt(2) }).safeParse(json).success ? "foreign" : undefined;
}

/** Writes a session's record, whole or not at all. */
export async function writeRecord(directory: string, record: SessionRecord): Promise<void> {
  await writeWhole(path.join(directory, RECORD_FILE), JSON.stringify(record), 0o600);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
