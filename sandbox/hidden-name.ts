import { foldName } from "../policy/sandbox-name.ts";

/** Directories and files that belong to a system and not to a project, beside everything that begins with a dot; folded. */
const SYSTEM_NAMES: ReadonlySet<string> = new Set(["lost+found", "$recycle.bin", "system volume information", "desktop.ini", "thumbs.db"]);

/** Code points that HFS+ ignores in names, so that `.g<U+200C>it` is `.git` there; leading ones would also hide the dot (CVE-2014-9390). */
const IGNORED = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;

/** `GIT~1` is NTFS's and FAT's short name of `.git`: the dot is left out of it. */
const SHORT_DOT_NAME = /^(git|ssh|env|agentb|gnupg|aws|npmrc|netrc)[^~]{0,3}~\d+$/;

/** True for names that only a grant with `hidden` may use. */
export function isHiddenName(name: string): boolean {
  const plain = isPlain(name);
  const seen = plain ? name : name.replace(IGNORED, "");
  if (seen.startsWith(".")) return true;
  const folded = plain ? seen.toLowerCase() : foldName(seen);
  return SYSTEM_NAMES.has(folded) || (folded.includes("~") && SHORT_DOT_NAME.test(folded));
}

/** Names of the guard's own files inside a root: its trash, its unfinished writes. No grant opens them. */
export const OWN_PREFIX = ".agentbox-";

/** A directory of AgentBox's configuration: whoever writes it judges himself. Reading needs `hidden`, writing no grant gives. */
const OWN_DIRECTORY = ".agentbox";

/** What of the guard's own a name is. */
export function judgeOwnName(name: string): "never" | "read-only" | undefined {
  if (isPlain(name) && !/agentb/i.test(name)) return undefined;
  const seen = foldName(name.replace(IGNORED, ""));
  if (seen.startsWith(OWN_PREFIX)) return "never";
  return seen === OWN_DIRECTORY || /^agentb[^~]{0,3}~\d+$/.test(seen) ? "read-only" : undefined;
}

function isPlain(name: string): boolean {
  // eslint-disable-next-line no-control-regex
  return /^[\x00-\x7f]*$/.test(name);
}
