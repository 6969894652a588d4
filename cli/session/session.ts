import { randomBytes } from "node:crypto";
import { chmod, mkdir, readdir, rm, rmdir, stat, symlink } from "node:fs/promises";
import path from "node:path";
import { DECISION_LOG_FILE } from "../../policy/decision-record.ts";
import { makePrivateDirectory } from "./home.ts";
import { ALIVE_FILE } from "./keeper-watch.ts";
import { removeProxySecrets } from "./proxy-secrets.ts";
import { describeSelf } from "./owner.ts";
import { findSessions, readRecord, type SessionRecord, writeRecord } from "./session-record.ts";
import { describeVisible, type VisibleDirectory } from "./visible-directory.ts";
import { DRAFT_SUFFIX } from "./whole-file.ts";

export type Session = {
  record: SessionRecord;
  directory: string;
  seccomp: string;
  /** Where the box writes its decision log. */
  log: string;
  /** What the agent's container sees of it, and what the holder's does. */
  box: VisibleDirectory;
  holder: VisibleDirectory;
};

type SessionFacts = Pick<SessionRecord, "engine" | "project" | "agent" | "topology" | "firewall">;

/** Opens a session: an id, and a directory of its own that says who owns it. */
export async function openSession(agentboxHome: string, facts: SessionFacts): Promise<Session> {
  const now = new Date();
  const id = makeSessionId(now);
  const container = `agentbox-${id}`;
  const directory = path.join(findSessions(agentboxHome), id);
  const record: SessionRecord = {
    version: 2,
    id,
    owner: await describeSelf(),
    container,
    holder: facts.topology === "sidecar" ? `${container}-net` : null,
    started: now.toISOString(),
    ended: null,
    ...facts,
  };
  await makePrivateDirectory(directory);
  await writeRecord(directory, record);
  const log = path.join(directory, "log");
  if (facts.firewall) {
    await mkdir(log);
    // The proxy's uid writes it; the directory above keeps everybody else of the host out.
    await chmod(log, 0o777);
    // The log alone is mounted into the box, as a directory; its readers look for the file one level higher.
    await symlink(path.join("log", DECISION_LOG_FILE), path.join(directory, DECISION_LOG_FILE));
  }
  return { record, directory, seccomp: path.join(directory, "seccomp.json"), log, box: describeVisible(directory, "box"), holder: describeVisible(directory, "holder") };
}

/** What is removed with the box. The record goes last where nothing is kept: by it the next start would try again. */
const fleeting = ["box", "box-launch", "holder", "holder-launch", "seccomp.json", "overlay.json", "status.json"];

/**
 * Removes the session's files. Where the box has written a decision log, that and the record are kept, and
 * the record says when the session ended and how.
 */
export async function closeSession({ directory, record }: { directory: string; record: SessionRecord }, exitCode: number | null): Promise<void> {
  await removeFleeting(directory);
  await removeProxySecrets(path.join(directory, "log"));
  await rm(path.join(directory, "log", ALIVE_FILE), { recursive: true, force: true });
  if ((await readdir(path.join(directory, "log")).catch(() => [])).length > 0) {
    await writeRecord(directory, { ...record, ended: { time: new Date().toISOString(), exitCode } });
    return;
  }
  await removeWhole(directory);
}

async function removeFleeting(directory: string): Promise<void> {
  // A session that was killed while it wrote has left drafts.
  const drafts = (await readdir(directory).catch(() => [])).filter((name) => name.endsWith(DRAFT_SUFFIX));
  for (const name of [...drafts, ...fleeting]) await rm(path.join(directory, name), { recursive: true, force: true });
}

/** Removes what a session left, its decision log too; what is not ours stays, and the directory with it. */
export async function removeWhole(directory: string): Promise<void> {
  await removeFleeting(directory);
  for (const name of ["log", DECISION_LOG_FILE, "session.json"]) await rm(path.join(directory, name), { recursive: true, force: true });
  await rmdir(directory).catch(() => undefined);
}

/** A session that is being opened has no record for a moment. */
const openingMs = 600_000;

/** Removes session directories whose record is missing or broken and that are no longer being opened. Returns their names. */
export async function sweepBroken(agentboxHome: string): Promise<string[]> {
  const names = await readdir(findSessions(agentboxHome)).catch(() => []);
  const swept = await Promise.all(
    names.map(async (name) => {
      const directory = path.join(findSessions(agentboxHome), name);
      // The record of another version of the command line is not broken.
      if ((await readRecord(directory)) !== undefined) return [];
      const facts = await stat(directory).catch(() => undefined);
      if (facts === undefined || Date.now() - facts.mtimeMs < openingMs) return [];
      await removeWhole(directory);
      return (await stat(directory).catch(() => undefined)) === undefined ? [name] : [];
    }),
  );
  return swept.flat();
}

/** Sorts by time and is unique without asking anyone: `20260801-142501-9f3c1a`. */
function makeSessionId(now: Date): string {
  const [date = "", time = ""] = now.toISOString().replaceAll(/[-:]/g, "").split("T");
  return `${date}-${time.slice(0, 6)}-${randomBytes(3).toString("hex")}`;
}
