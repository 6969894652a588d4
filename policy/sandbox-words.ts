import { parsed, quote, refused, type Parsed } from "./parsed.ts";

/** What an operation of the file guard is for, in requests and in rules. */
export const SANDBOX_INTENTS = ["read", "write", "create", "delete", "rename", "move", "list"] as const;
export type SandboxIntent = (typeof SANDBOX_INTENTS)[number];

/** What makes an operation risky, in verdicts and in rules. */
export const SANDBOX_TAGS = ["delete", "move", "rename", "overwrite", "large", "hidden", "executable", "batch"] as const;
export type SandboxTag = (typeof SANDBOX_TAGS)[number];

/** What is large where the configuration does not say. */
export const DEFAULT_LARGE = "10m";
/** Seconds that a human has to answer. */
export const DEFAULT_TIMEOUT = 300;

const UNITS = { "": 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 } as const;

/** Parses a size such as `10m`, `512k` or `4096` into bytes; the units are powers of 1024. */
export function parseSize(text: string): Parsed<number> {
  const { digits, unit } = /^(?<digits>0|[1-9][0-9]{0,11})(?<unit>[kmg]?)$/.exec(text)?.groups ?? {};
  if (digits === undefined || !(unit === "" || unit === "k" || unit === "m" || unit === "g")) return refused(`${quote(text)} is not a size`, "bytes, or a number with k, m or g, such as 10m");
  return parsed(Number(digits) * UNITS[unit]);
}

/** Ids of the guard's own rules begin so; a rule of a file can never be taken for one of them. */
export const INVARIANT_PREFIX = "invariant:";
/** The id that stands where no rule matched. */
export const NO_RULE_ID = "default";

/** Parses the id of a rule, which stands in logs and questions. */
export function parseRuleId(text: string): Parsed<string> {
  if (text.startsWith(INVARIANT_PREFIX) || text === NO_RULE_ID) return refused(`${quote(text)} is what the guard calls its own rules`, "another id");
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(text)) return parsed(text);
  return refused(`${quote(text)} is not an id`, "one to 64 letters, digits, dots, dashes and underscores");
}

/** What a grant gives: each letter an intent. */
export type GrantAccess = { read: boolean; write: boolean; create: boolean; delete: boolean };

/** Parses the access of a grant, such as `r`, `rw` or `rwcd`: read, write, create, delete. */
export function parseAccess(text: string): Parsed<GrantAccess> {
  if (text === "" || !/^r?w?c?d?$/.test(text)) return refused(`${quote(text)} is not an access`, "letters of rwcd in this order: read, write, create, delete");
  return parsed({ read: text.includes("r"), write: text.includes("w"), create: text.includes("c"), delete: text.includes("d") });
}

/** Parses an end of names, such as `.env`, which is also the end of `prod.env`. */
export function parseExtension(text: string): Parsed<string> {
  if (/^\.[^/*?\p{Cc}]+$/u.test(text) && text.isWellFormed()) return parsed(text);
  const fix = /^[\w-]+$/.test(text) ? `write ".${text}"` : undefined;
  return refused(`${quote(text)} is not an extension`, "a dot and what follows it, such as .env or .tar.gz", fix);
}
