import { parseEntry, renderEntry } from "../policy/entry.ts";
import type { Complaint } from "../policy/errors.ts";
import { findNearest } from "../policy/nearest.ts";
import { type Parsed, parsed, quote } from "../policy/parsed.ts";

/** What the running proxy is asked, or told. */
type CtlRequest =
  | { op: "health" | "config" | "patterns" | "reload" | "events" }
  | { op: "blocked"; after: number | undefined }
  | { op: "mode"; mode: "limited" | "full" }
  | { op: "allow"; hosts: readonly string[] };

/** A command about the stand-alone proxy. `file` is what `--config` names. */
export type ProxyCommand =
  | { verb: "proxy"; file: string | undefined; logDir: string | undefined; approve: boolean }
  | { verb: "proxy ctl"; file: string | undefined; request: CtlRequest; json: boolean };

const OPS = ["health", "config", "patterns", "blocked", "mode", "reload", "events", "allow"] as const;
const USAGE = "agentbox proxy ctl health|config|patterns|blocked|mode|reload|events|allow";

type Reading = {
  verb: ProxyCommand["verb"];
  /** What stands after the verb. */
  words: readonly string[];
  has: (name: string) => boolean;
  value: (name: string) => string | undefined;
  complaints: Complaint[];
};

/** Reads the words and options of a verb about the stand-alone proxy; undefined where complaints say why it was not understood. */
export function readProxyCommand({ verb, words, has, value, complaints }: Reading): ProxyCommand | undefined {
  const file = value("config");
  if (verb === "proxy") {
    refuseRest(words, "agentbox help proxy", complaints);
    return { verb, file, logDir: value("log"), approve: has("approve") };
  }
  const request = readRequest(words, value("after"), complaints);
  return request === undefined ? undefined : { verb, file, request, json: has("json") };
}

function readRequest([word, ...rest]: readonly string[], after: string | undefined, complaints: Complaint[]): CtlRequest | undefined {
  const op = OPS.find((known) => known === word);
  if (op === undefined) {
    const near = word === undefined ? undefined : findNearest(word, OPS);
    complaints.push({ what: word === undefined ? "proxy ctl needs a word that says what to do" : `proxy ctl ${quote(word)} is no command`, expected: USAGE, fix: near === undefined ? "see agentbox help proxy ctl" : `did you mean ${near}?` });
    return undefined;
  }
  if (after !== undefined && op !== "blocked") complaints.push({ what: `--after means nothing to ${op}`, fix: "leave it out" });
  if (op === "mode") return readMode(rest, complaints);
  if (op === "allow") return readHosts(rest, complaints);
  refuseRest(rest, "agentbox help proxy ctl", complaints);
  return op === "blocked" ? { op, after: readSeq(after, complaints) } : { op };
}

function readMode([word, ...rest]: readonly string[], complaints: Complaint[]): CtlRequest | undefined {
  refuseRest(rest, "agentbox help proxy ctl", complaints);
  const mode = (["limited", "full"] as const).find((known) => known === word);
  if (mode === undefined) complaints.push({ what: word === undefined ? "mode needs a word" : `${quote(word)} is no mode`, expected: "limited (GET, HEAD and OPTIONS only) or full" });
  return mode === undefined ? undefined : { op: "mode", mode };
}

function readHosts(words: readonly string[], complaints: Complaint[]): CtlRequest {
  if (words.length === 0) complaints.push({ what: "allow needs a host", expected: "agentbox proxy ctl allow HOST[:PORT]" });
  return { op: "allow", hosts: words.flatMap((word) => collect(parseHostWord(word), complaints)) };
}

function parseHostWord(text: string): Parsed<string> {
  const entry = parseEntry(text, "list");
  return entry.ok ? parsed(renderEntry(entry.value)) : entry;
}

function readSeq(text: string | undefined, complaints: Complaint[]): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[0-9]{1,15}$/.test(text)) complaints.push({ what: `--after ${quote(text)} is not the number of a line`, expected: "a whole number" });
  return Number(text);
}

function refuseRest(words: readonly string[], help: string, complaints: Complaint[]): void {
  complaints.push(...words.map((stray) => ({ what: `${quote(stray)} is one word too many`, fix: `leave it out, or see ${help}` })));
}

function collect<T>(answer: Parsed<T>, complaints: Complaint[]): T[] {
  if (answer.ok) return [answer.value];
  complaints.push(answer.complaint);
  return [];
}
