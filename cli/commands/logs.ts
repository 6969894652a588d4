import type { DecisionRecord } from "../../policy/decision-record.ts";
import type { Edge } from "../edge.ts";
import { describeGaps, readDecisionFiles } from "../log/decision-files.ts";
import { followDecisions } from "../log/follow-decisions.ts";
import { chooseLog, NO_SESSION } from "./session-choice.ts";

type LogsQuery = { follow: boolean; json: boolean; session: string | undefined };

/** Shows every decision of a session, or of the stand-alone proxy; with `follow` also those to come, until the session or the reader ends. */
export async function showLogs({ host, print, say }: Edge, { follow, json, session }: LogsQuery): Promise<number> {
  const chosen = await chooseLog(host, session);
  say(chosen?.title ?? NO_SESSION);
  if (chosen === undefined) return 0;
  const { file, isOver } = chosen;
  const render = json ? (record: DecisionRecord) => JSON.stringify(record) : renderRecord;
  if (!follow) {
    const { records, ...gaps } = readDecisionFiles(file);
    for (const text of describeGaps(gaps)) say(text);
    await print(records.map((record) => `${render(record)}\n`).join(""));
    return 0;
  }
  for (const text of describeGaps(readDecisionFiles(file))) say(text);
  await followDecisions({ file, take: async (record) => await print(`${render(record)}\n`), isOver, signal: new AbortController().signal });
  return 0;
}

/** One record as one line: when, what, and why. */
export function renderRecord(record: DecisionRecord): string {
  if (record.kind === "event") {
    const changes = [...record.added.map((text) => `+${text}`), ...record.removed.map((text) => `-${text}`)];
    return [record.time, "event ", record.event, record.detail, changes.join(" ")].filter((part) => part !== "").join("  ");
  }
  if (record.kind === "traffic") return renderTraffic(record);
  const { time, action, host, port, protocol, type, reason, rule, source, addresses, detail, client, count } = record;
  const who = client === null ? [] : [client.command ?? (client.uid === null ? "" : `uid ${client.uid}`)];
  const parts = [
    time,
    action.padEnd(6),
    renderPlace(host, port),
    [protocol, type ?? record.method].filter((part) => part !== null && part !== undefined).join(" "),
    reason,
    rule === null ? "" : `${rule}${source === null ? "" : ` (${source})`}`,
    addresses.join(" "),
    detail ?? "",
    ...who,
    count > 1 ? `${count} times` : "",
  ];
  return parts.filter((part) => part !== "").join("  ");
}

function renderTraffic({ time, host, port, protocol, method, bytesUp, bytesDown, durationMs, flows, cut, bodies }: Extract<DecisionRecord, { kind: "traffic" }>): string {
  const what = method === null ? protocol : `${protocol} ${method}`;
  const parts = [time, "bytes ", renderPlace(host, port), what, `${bytesUp} up`, `${bytesDown} down`, bodies === undefined ? "" : `bodies of ${bodies.up} and ${bodies.down}`, `${durationMs} ms`, flows > 1 ? `${flows} connections` : "", cut ? "cut by a new policy" : ""];
  return parts.filter((part) => part !== "").join("  ");
}

function renderPlace(host: string, port: number | null): string {
  return port === null ? host : `${host.includes(":") ? `[${host}]` : host}:${port}`;
}
