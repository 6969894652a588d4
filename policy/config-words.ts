import { z } from "zod";
import { parseAddress } from "./address.ts";
import { AGENT_PROFILES } from "./agent-profile-data.ts";
import { parseBlock } from "./block.ts";
import { parseAgentWord, parsePortMapping } from "./box-words.ts";
import { parseEntry, parseTarget, renderEntry, type Entry } from "./entry.ts";
import type { Complaint } from "./errors.ts";
import { findNearest } from "./nearest.ts";
import { parsed, quote, refused, type Parsed } from "./parsed.ts";
import { parseOrderedRules } from "./ordered-rules.ts";
import type { DocumentRule } from "./policy-document.ts";
import { parseAllowPrivate, parsePrivateHosts } from "./private-host.ts";
import { refuseOpenWildcard, type PublicSuffixTest } from "./wildcard-check.ts";

const issueParams = z.object({ expected: z.string().optional(), fix: z.string().optional() });

/** Expected form and fix of an issue that a check of this file made. */
export function readIssueParams(params: unknown): z.infer<typeof issueParams> {
  const read = issueParams.safeParse(params);
  return read.success ? read.data : {};
}

/** A string that a parser of ours judges; its complaint travels in the issue, so that the caret stands under the very word. */
export function judgedString(parse: (text: string) => Parsed<unknown>): z.ZodString {
  return z.string().check((context) => {
    const result = parse(context.value);
    if (result.ok) return;
    const { what, expected, fix } = result.complaint;
    context.issues.push({ code: "custom", input: context.value, message: what, params: { expected, fix } });
  });
}

/** Parses an element of allow_hosts; wildcards over public suffixes are refused where the test is at hand. */
export function parseListEntry(text: string, isPublicSuffix?: PublicSuffixTest): Parsed<Entry> {
  const entry = parseEntry(text, "list");
  if (!entry.ok || isPublicSuffix === undefined || entry.value.target.kind === "range") return entry;
  return refuseOpenWildcard(entry.value.target.pattern, isPublicSuffix) ?? entry;
}

/** An element of allow_hosts in its long form. */
type HostTable = { host: string; ports?: number[] | undefined; protocol?: "tcp" | undefined; private?: boolean | undefined };

/** Parses the long form of an element of allow_hosts and returns the same entry as a word, in canonical form. Not for `private`. */
export function renderHostTable({ host, ports, protocol }: HostTable, isPublicSuffix?: PublicSuffixTest): Parsed<string> {
  const target = parseTarget(host, "list");
  if (!target.ok) return /:[0-9,]+$/.test(host) ? refused(`${quote(host)} names ports`, "a host alone", "write them as ports = [443]") : target;
  if (protocol === "tcp" && ports === undefined) return refused(`${quote(host)} has protocol = "tcp" and no ports`, "the ports that speak neither TLS nor HTTP", "add ports = [443]");
  const word = renderEntry({ target: target.value, ports: sortPorts(ports ?? [443]), protocol: protocol ?? "web" });
  const entry = parseListEntry(word, isPublicSuffix);
  return entry.ok ? parsed(word) : entry;
}

/** Judges the long form of a host as a whole, with the issue at the key that has to change. */
export function addHostIssues(context: z.core.ParsePayload<HostTable>, isPublicSuffix?: PublicSuffixTest): void {
  const { value } = context;
  const result = value.private === true ? judgePrivate(value.host) : renderHostTable(value, isPublicSuffix);
  const add = (key: string, { what: message, expected, fix }: Complaint): void => {
    context.issues.push({ code: "custom", input: value, message, path: [key], params: { expected, fix } });
  };
  if (!result.ok) add(value.protocol === "tcp" && value.ports === undefined ? "protocol" : "host", result.complaint);
  if (value.private === true && value.ports === undefined) add("private", { what: `${quote(value.host)} has private = true and no ports`, expected: "the ports that are needed", fix: "add ports = [5432]" });
}

function sortPorts(ports: readonly number[]): number[] {
  return [...new Set(ports)].toSorted((a, b) => a - b);
}

function judgePrivate(host: string): Parsed<string> {
  const [complaint] = parsePrivateHosts([{ host, ports: [443] }]).complaints;
  return complaint === undefined ? parsed(host) : refused(complaint.what, complaint.expected, complaint.fix);
}

/** Judges an ordered rule; its ports are judged by their own schema. */
export function addRuleIssues(context: z.core.ParsePayload<Omit<DocumentRule, "place">>, isPublicSuffix: PublicSuffixTest = () => false): void {
  const { value } = context;
  for (const { what: message, expected, fix } of parseOrderedRules([value], isPublicSuffix).complaints) {
    context.issues.push({ code: "custom", input: value, message, path: ["domain"], params: { expected, fix } });
  }
}

/** A text that is passed on: to the disk, the engine or the agent. None of them takes NUL. */
export const plainText = judgedString((text) => {
  if (text === "") return refused("the text is empty", "a text");
  return text.includes("\0") ? refused("the text holds a NUL character", "a text without it") : parsed(text);
});

/** A variable's value. It is never part of a message. */
export const variableValue = judgedString((text) => (text.includes("\0") ? refused("the value holds a NUL character", "a text without it") : parsed(text)));

/** A path below the project, `..` and all other ways out of it refused. The configuration itself is never the agent's to write. */
export const workspacePath = judgedString((text) => {
  const steps = text.split("/").filter((step) => step !== "" && step !== ".");
  // Some disks take .AgentBox for it.
  if (steps.some((step) => step.toLowerCase() === ".agentbox")) return refused(`${quote(text)} would have the agent write the rules that hold for it`, "a path other than .agentbox", "take it out of writable");
  const below = !text.startsWith("/") && !/\p{Cc}/u.test(text) && !steps.includes("..") && steps.length > 0;
  return below ? parsed(text) : refused(`${quote(text)} is not a path below the project`, "a relative path such as .vscode, without ..");
});

/** The value is not repeated, since it may carry a password. */
export const proxyUrl = judgedString((text) => {
  const url = URL.parse(text);
  const plain = url !== null && ["http:", "https:"].includes(url.protocol) && url.hostname !== "" && ["", "/"].includes(url.pathname) && url.search === "" && url.hash === "";
  return plain ? parsed(text) : refused("this is not the address of a proxy", "http://HOST:PORT");
});

export const blockWord = judgedString((text) => parseBlock(text));
export const addressWord = judgedString((text) => {
  const address = parseAddress(text);
  return address.ok ? address : refused(`${quote(text)} is not an address`, "the IP address of a resolver, such as 9.9.9.9");
});
export const portWord = judgedString((text) => parsePortMapping(text));
export const agentWord = judgedString((text) => parseAgentWord(text, AGENT_PROFILES.map(({ name }) => name)));

/** `allow_private`: blocks of special-purpose addresses. */
export const privateRange = judgedString((text) => {
  const [complaint] = parseAllowPrivate([{ text }]).complaints;
  return complaint === undefined ? parsed(text) : refused(complaint.what, complaint.expected, complaint.fix);
});

/** A service whose name must resolve and answer before the agent starts. */
export const criticalWord = judgedString((text) => {
  const entry = parseEntry(text, "allowlist-file");
  if (!entry.ok) return entry;
  const { target, protocol } = entry.value;
  if (target.kind === "pattern" && target.pattern.kind === "exact" && protocol === "web") return entry;
  return refused(`critical service ${quote(text)} is not a plain name`, "one host name that speaks TLS, such as api.example.com", "name one host of the service");
});

/** The fix that names the nearest known word, undefined where none is near. */
export function suggest(word: string, known: readonly string[]): string | undefined {
  const near = findNearest(word, known);
  return near === undefined ? undefined : `did you mean ${near}?`;
}
