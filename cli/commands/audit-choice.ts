import { lstatSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { KnownError, UsageError } from "../../policy/errors.ts";
import { quote, quotePath } from "../../policy/parsed.ts";
import { AUDIT_LOG_FILE } from "../../sandbox/audit-file.ts";
import type { Host } from "../host.ts";
import { errorCode } from "../workspace/path-fact.ts";

/** A log that is asked about; `session` is undefined for a file that was named by its path. */
export type ChosenLog = { file: string; session: string | undefined };

type GuardHost = Pick<Host, "agentboxHome" | "cwd">;

/**
 * Finds the log of the session named, by its whole id or the beginning of it, else the one that was written last.
 * Undefined where none is recorded; UsageError for a name that none has.
 */
export function chooseLog({ agentboxHome }: GuardHost, session: string | undefined): ChosenLog | undefined {
  const logs = listLogs(join(agentboxHome, "guard"));
  if (session === undefined) return logs.toSorted((a, b) => b.written - a.written)[0];
  const named = logs.filter((log) => log.session.startsWith(session));
  const [only] = named;
  const exact = named.find((log) => log.session === session) ?? (named.length === 1 ? only : undefined);
  if (exact !== undefined) return exact;
  throw new UsageError({ what: `${named.length === 0 ? "no" : "more than one"} audit log of a session ${quote(session)} is recorded`, expected: "the id of one session", fix: "list them: ls ~/.agentbox/guard" });
}

/** As `chooseLog`; what holds a slash or ends in `.jsonl` is a file. */
export function chooseLogOrFile(host: GuardHost, target: string | undefined): ChosenLog {
  if (target !== undefined && (target.includes("/") || target.endsWith(".jsonl"))) return { file: resolve(host.cwd, target), session: undefined };
  const chosen = chooseLog(host, target);
  if (chosen === undefined) throw new UsageError({ what: NO_LOG, expected: "a log to verify", fix: "name its file" });
  return chosen;
}

/** Runs what reads a log. Throws UsageError where that cannot be read. */
export async function reading<T>({ file }: ChosenLog, action: () => T | Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    // What the system and the reader say; the rest is known already, or a bug.
    if (error instanceof KnownError || !(error instanceof Error) || error.name !== "Error") throw error;
    throw new UsageError({ what: `${quotePath(file)} cannot be read (${errorCode(error)})`, expected: "an audit log that you may read", fix: "correct its path or its permissions" }, { cause: error });
  }
}

export const NO_LOG = "no session of the file guard is recorded";

function listLogs(directory: string): (ChosenLog & { session: string; written: number })[] {
  return listNames(directory).flatMap((session) => {
    const file = join(directory, session, AUDIT_LOG_FILE);
    const stat = lstatSync(file, { throwIfNoEntry: false });
    return stat?.isFile() === true ? [{ file, session, written: stat.mtimeMs }] : [];
  });
}

function listNames(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [];
    throw new UsageError({ what: `${quotePath(directory)} cannot be read (${errorCode(error)})`, expected: "a directory of yours", fix: "correct its permissions" }, { cause: error });
  }
}
