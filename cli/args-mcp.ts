import type { Complaint } from "../policy/errors.ts";
import { type Parsed, parsed, quote, refused } from "../policy/parsed.ts";
import { type GrantAccess, parseAccess } from "../policy/sandbox-words.ts";
import { sessionIdSchema } from "../sandbox/request.ts";

/** A folder and what may be done below it, as `--grant` says it; the folder may be relative to the working directory. */
export type GrantWord = { root: string; access: GrantAccess };

/** The file guard as a server. `session` is undefined for a new one, `socket` where it speaks on stdin and stdout. */
export type McpCommand = { verb: "mcp"; session: string | undefined; grants: readonly GrantWord[]; socket: string | undefined };

type Reading = {
  value: (name: string) => string | undefined;
  values: (name: string) => readonly string[];
  complaints: Complaint[];
};

/** Reads the options of `agentbox mcp`. */
export function readMcpCommand({ value, values, complaints }: Reading): McpCommand {
  const session = value("session");
  if (session !== undefined && !sessionIdSchema.safeParse(session).success) complaints.push({ what: `--session ${quote(session)} is no name of a session`, expected: "one to 64 letters, digits, dots, dashes and underscores" });
  const socket = value("socket");
  if (socket === "") complaints.push({ what: "--socket names no path", expected: "the path of a socket that shall be made" });
  const grants = values("grant").flatMap((text) => collect(parseGrant(text), complaints));
  return { verb: "mcp", session, grants, socket };
}

/**
 * Parses `DIR:LETTERS`. A directory may hold colons, so the last one counts. Other than in `[sandbox]`, `w` also makes new
 * files: who gives a folder for writing on a command line means both.
 */
export function parseGrant(text: string): Parsed<GrantWord> {
  const colon = text.lastIndexOf(":");
  const [root, letters] = [text.slice(0, Math.max(0, colon)), text.slice(colon + 1)];
  if (root === "") return refused(`--grant ${quote(text)} does not say what may be done there`, "DIR:r, DIR:rw or DIR:rwd", colon === -1 ? `write --grant ${quote(`${text}:rw`)}` : undefined);
  const access = parseAccess(letters);
  if (!access.ok) return refused(`--grant ${quote(text)}: ${access.complaint.what}`, "r, rw (write and create), or with d for delete, move and rename: rwd");
  return parsed({ root, access: { ...access.value, create: access.value.create || access.value.write } });
}

function collect<T>(answer: Parsed<T>, complaints: Complaint[]): T[] {
  if (answer.ok) return [answer.value];
  complaints.push(answer.complaint);
  return [];
}
