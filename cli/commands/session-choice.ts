import { join } from "node:path";
import { DECISION_LOG_FILE } from "../../policy/decision-record.ts";
import { UsageError } from "../../policy/errors.ts";
import { quote } from "../../policy/parsed.ts";
import type { Host } from "../host.ts";
import { isGone } from "../session/owner.ts";
import { findDecisionFile } from "../log/decision-files.ts";
import { readRecord, type RecordedSession, readSessions } from "../session/session-record.ts";
import { findProject } from "./project-policy.ts";
import { findProxyDirectory } from "./proxy-place.ts";

/** A session with a decision log; `others` run in the same project at the same time. */
export type ChosenSession = RecordedSession & { running: boolean; others: readonly string[] };

/**
 * Finds the session that is asked about: the one named, by its whole id or the beginning of it, else the
 * newest of this project that runs, else the newest. Undefined where none is recorded; UsageError for a name
 * that none has.
 */
export async function chooseSession(host: Pick<Host, "agentboxHome" | "cwd">, id: string | undefined): Promise<ChosenSession | undefined> {
  const sessions = (await readSessions(host.agentboxHome)).filter(({ record }) => record.firewall);
  if (id !== undefined) {
    const named = sessions.filter(({ record }) => record.id.startsWith(id));
    const [only] = named;
    if (only !== undefined && named.length === 1) return { ...only, running: await isRunning(only), others: [] };
    throw new UsageError({ what: `${named.length === 0 ? "no" : "more than one"} session ${quote(id)} is recorded`, expected: "the id of one session", fix: `list them: ls ~/.agentbox/sessions; or ${PROXY}, for the one without a box: agentbox logs, agentbox proxy ctl blocked` });
  }
  const project = findProject(host);
  const own = sessions.filter(({ record }) => record.project === project);
  const running = await Promise.all(own.map(async (session) => ((await isRunning(session)) ? [session] : [])));
  const [first, ...others] = running.flat();
  const chosen = first ?? own[0];
  return chosen === undefined ? undefined : { ...chosen, running: first !== undefined, others: others.map(({ record }) => record.id) };
}

/** The log of the proxy without a box, as `--session` names it. */
const PROXY = "proxy";

/** A decision log that is asked about. `id` is that of a session, or `proxy`. */
export type ChosenLog = { id: string; file: string; title: string; running: boolean; /** Nobody writes it any more. */ isOver: () => Promise<boolean> };

/** Finds a log: of a session as `chooseSession` does, or with `proxy` that of the stand-alone proxy in its usual place. */
export async function chooseLog(host: Pick<Host, "agentboxHome" | "cwd">, id: string | undefined): Promise<ChosenLog | undefined> {
  if (id === PROXY) return { id, file: join(findProxyDirectory(host.agentboxHome), DECISION_LOG_FILE), title: "the stand-alone proxy", running: true, isOver: async () => false };
  const chosen = await chooseSession(host, id);
  if (chosen === undefined) return undefined;
  const { directory, running } = chosen;
  const isOver = async (): Promise<boolean> => {
    const record = await readRecord(directory);
    return record === undefined || record === "foreign" || !(await isRunning({ directory, record }));
  };
  return { id: chosen.record.id, file: findDecisionFile(directory), title: describeChoice(chosen), running, isOver };
}

/** A session whose command line is gone has no box, or one that the next start removes. */
export async function isRunning({ record }: RecordedSession): Promise<boolean> {
  return record.ended === null && !(await isGone(record.owner));
}

/** Says which session an answer is about. */
export function describeChoice({ record, running, others }: ChosenSession): string {
  const state = running ? "running" : `ended ${record.ended?.time ?? "without a word"}`;
  return `session ${record.id}, ${state}${others.length === 0 ? "" : `; also running: ${others.join(", ")} (--session ID)`}`;
}

export const NO_SESSION = "no session of this project with a firewall is recorded";
