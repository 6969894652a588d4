import { type ConfigAnswer, modeSchema, type PatternsAnswer, type ReloadAnswer } from "../../policy/admin-answers.ts";
import type { Methods } from "../../policy/use.ts";
import type { WrittenLine } from "../log/decision-log.ts";
import type { Refused } from "./admin-guard.ts";

/** The proxy as the admin API drives it. */
export type AdminSubject = {
  /** What is wrong now, a sentence each. */
  troubles: () => readonly string[];
  describeConfig: () => ConfigAnswer;
  describePatterns: () => PatternsAnswer;
  /** The newest refusals, as lines of the log, the oldest first; `after` leaves out those up to its number. */
  recentRefusals: (after: number) => readonly WrittenLine[];
  setMode: (mode: Methods) => void;
  /** Throws KnownError where the configuration is refused and the one before serves on. */
  reload: (why: string) => Promise<ReloadAnswer>;
  /** Hands over every line of the log from now on; returns how to stop. */
  listen: (take: (line: WrittenLine) => void) => () => void;
};

type Call = { query: URLSearchParams; body: string; subject: AdminSubject };
type Result = { text: string; json?: undefined } | { json: string; text?: undefined } | Refused;
type Route = { method: "GET" | "POST"; stream: false; answer: (call: Call) => Result | Promise<Result> } | { method: "GET"; stream: true };

const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  ["/health", { method: "GET", stream: false, answer: answerHealth }],
  ["/config", { method: "GET", stream: false, answer: ({ subject }) => ({ json: JSON.stringify(subject.describeConfig()) }) }],
  ["/patterns", { method: "GET", stream: false, answer: ({ subject }) => ({ json: JSON.stringify(subject.describePatterns()) }) }],
  ["/blocked", { method: "GET", stream: false, answer: answerBlocked }],
  ["/mode", { method: "POST", stream: false, answer: answerMode }],
  ["/reload", { method: "POST", stream: false, answer: async ({ subject }) => ({ json: JSON.stringify(await subject.reload("asked for by the admin API")) }) }],
  ["/events", { method: "GET", stream: true }],
]);

/** Finds what answers a path. */
export function findRoute(path: string): Route | undefined {
  return ROUTES.get(path);
}

/** Degraded is a state in which the proxy goes on serving, so the status does not say that it is down. */
function answerHealth({ subject }: Call): Result {
  const troubles = subject.troubles();
  return { text: troubles.length === 0 ? "ok" : `degraded: ${troubles.join("; ")}` };
}

function answerBlocked({ query, subject }: Call): Result {
  const text = query.get("after");
  if (text !== null && !/^[0-9]{1,15}$/.test(text)) return { status: 400, error: "after is not the number of a line" };
  const after = text === null ? null : Number(text);
  const lines = subject.recentRefusals(after ?? -1);
  // The lines are JSON as they are.
  return { json: `{"version":1,"last":${lines.at(-1)?.seq ?? after},"blocked":[${lines.map((line) => line.text).join(",")}]}` };
}

function answerMode({ body, subject }: Call): Result {
  const request = modeSchema.safeParse(parseJson(body));
  if (!request.success) return { status: 400, error: 'expected {"mode":"limited"} or {"mode":"full"}' };
  subject.setMode(request.data.mode);
  return { json: JSON.stringify({ mode: request.data.mode }) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The schema refuses it.
    return undefined;
  }
}
