import { randomBytes } from "node:crypto";
import { chmod, mkdir, readdir, readFile, rm, rmdir, stat } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { type BoxSpec, LAUNCH_DIR, BOX_SPEC_PATH, PROGRESS_FILE } from "../../policy/box-spec.ts";
import { engineKinds } from "../engine/engine.ts";
import { buildSeccompProfile } from "../engine/seccomp-profile.ts";
import type { Mount } from "../mount.ts";
import { makePrivateDirectory, writeWhole } from "./home.ts";
import { describeSelf, ownerSchema } from "./owner.ts";

/** What a session writes down before it makes anything, so that another start can remove it all. */
const recordSchema = z.strictObject({
  version: z.literal(1),
  id: z.string().regex(/^[0-9a-z-]+$/),
  owner: ownerSchema,
  engine: z.enum(engineKinds),
  container: z.string(),
  project: z.string(),
});

export type SessionRecord = z.infer<typeof recordSchema>;

export type Session = {
  record: SessionRecord;
  directory: string;
  seccomp: string;
  launchDirectory: string;
  progress: string;
};

/** Opens a session: an id, and a directory of its own that says who owns it. */
export async function openSession(agentboxHome: string, facts: Pick<SessionRecord, "engine" | "project">): Promise<Session> {
  const id = makeSessionId(new Date());
  const directory = path.join(findSessions(agentboxHome), id);
  const record: SessionRecord = { version: 1, id, owner: await describeSelf(), container: `agentbox-${id}`, ...facts };
  await makePrivateDirectory(directory);
  await writeWhole(path.join(directory, "session.json"), JSON.stringify(record), 0o600);
  const launchDirectory = path.join(directory, "launch");
  return { record, directory, seccomp: path.join(directory, "seccomp.json"), launchDirectory, progress: path.join(launchDirectory, PROGRESS_FILE) };
}

/** Writes what the engine and the box read, and returns the mounts that carry it into the box. */
export async function writeSessionFiles({ session, spec, terminal }: { session: Session; spec: BoxSpec; terminal: boolean }): Promise<Mount[]> {
  const specFile = path.join(session.directory, "box.json");
  // Root in the box may not read the files of others, so others may; the directories above keep the host's users out.
  await writeWhole(specFile, JSON.stringify(spec), 0o644);
  await chmod(specFile, 0o644);
  await writeWhole(session.seccomp, JSON.stringify(buildSeccompProfile()), 0o600);
  const mounts: Mount[] = [{ kind: "bind", source: specFile, target: BOX_SPEC_PATH, readOnly: true }];
  if (!terminal) return mounts;
  await mkdir(session.launchDirectory, { recursive: true });
  await chmod(session.launchDirectory, 0o777);
  return [...mounts, { kind: "bind", source: session.launchDirectory, target: LAUNCH_DIR, readOnly: false }];
}

/** Removes the session's files. A log that outlives the box keeps the directory. */
export async function closeSession(directory: string): Promise<void> {
  // A session that was killed while it wrote has left drafts; the record goes last, by which the next start would try again.
  const drafts = (await readdir(directory).catch(() => [])).filter((name) => name.endsWith(".new"));
  for (const name of [...drafts, "launch", "box.json", "seccomp.json", "session.json"]) await rm(path.join(directory, name), { recursive: true, force: true });
  await rmdir(directory).catch(() => undefined);
}

/** Reads the records of all sessions; a directory without a readable one is for `sweepBroken`. */
export async function readSessions(agentboxHome: string): Promise<{ directory: string; record: SessionRecord }[]> {
  const names = await readdir(findSessions(agentboxHome)).catch(() => []);
  const found = await Promise.all(
    names.map(async (name) => {
      const directory = path.join(findSessions(agentboxHome), name);
      const text = await readFile(path.join(directory, "session.json"), "utf8").catch(() => undefined);
      const record = text === undefined ? undefined : recordSchema.safeParse(parseJson(text)).data;
      return record === undefined ? [] : [{ directory, record }];
    }),
  );
  return found.flat();
}

/** A session that is being opened has no record for a moment. */
const openingMs = 600_000;

/** Removes session directories whose record is missing or broken and that are no longer being opened. Returns their names. */
export async function sweepBroken(agentboxHome: string): Promise<string[]> {
  const names = await readdir(findSessions(agentboxHome)).catch(() => []);
  const swept = await Promise.all(
    names.map(async (name) => {
      const directory = path.join(findSessions(agentboxHome), name);
      const text = await readFile(path.join(directory, "session.json"), "utf8").catch(() => "");
      const json = parseJson(text);
      // The record of another version of the command line is not broken.
      if (recordSchema.safeParse(json).success || z.object({ version: z.number().gt(1) }).safeParse(json).success) return [];
      const facts = await stat(directory).catch(() => undefined);
      if (facts === undefined || Date.now() - facts.mtimeMs < openingMs) return [];
      await closeSession(directory);
      return (await stat(directory).catch(() => undefined)) === undefined ? [name] : [];
    }),
  );
  return swept.flat();
}

function findSessions(agentboxHome: string): string {
  return path.join(agentboxHome, "sessions");
}

/** Sorts by time and is unique without asking anyone: `20260801-142501-9f3c1a`. */
function makeSessionId(now: Date): string {
  const [date = "", time = ""] = now.toISOString().replaceAll(/[-:]/g, "").split("T");
  return `${date}-${time.slice(0, 6)}-${randomBytes(3).toString("hex")}`;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
