import type { CallToolResult } from "@modelcontextprotocol/server";
import { KnownError } from "../../policy/errors.ts";
import { FileError, GuardError, type Refusal } from "../../sandbox/errors.ts";

/** What a program finds in `structuredContent` of a tool that did nothing. */
type Refused = {
  /** `refused` by the guard, `failed` at the file system, or `malformed` as a request. */
  outcome: "refused" | "failed" | "malformed";
  refusal?: Refusal;
  ruleId?: string;
  /** The kernel's word, of `failed`. */
  code?: string;
  what: string;
  fix: string;
};

/**
 * A result as text for the model and as data for programs. No tool declares a schema of its output: clients check it
 * against refusals, too, whose form is another.
 */
export function makeResult(text: string, structuredContent: Record<string, unknown>): CallToolResult {
  return { content: [{ type: "text", text }], structuredContent };
}

/** A refusal is an answer, not a failure of the protocol: the model shall read why, and what to do instead. */
export function makeRefusal(error: KnownError): CallToolResult {
  const refused = describeRefusal(error);
  const { outcome, refusal, code, ruleId, what, fix } = refused;
  const head = outcome === "refused" ? `Refused (${refusal ?? ""}, ${ruleId ?? ""})` : outcome === "failed" ? `Failed (${code ?? ""})` : "Malformed request";
  return { ...makeResult(`${head}: ${what}.\nWhat to do: ${fix}.`, refused), isError: true };
}

function describeRefusal(error: KnownError): Refused {
  const what = error.complaints.map((complaint) => complaint.what).join("; ");
  const [complaint] = error.complaints;
  const said = [complaint?.expected === undefined ? "" : `expected is ${complaint.expected}`, complaint?.fix ?? ""].filter((part) => part !== "").join("; ");
  if (error instanceof GuardError) return { outcome: "refused", refusal: error.refusal, ruleId: error.rule, what, fix: said === "" ? ADVICE[error.refusal] : said };
  if (error instanceof FileError) return { outcome: "failed", code: error.code, what, fix: said === "" ? "look at the directory with list_files" : said };
  return { outcome: "malformed", what, fix: said === "" ? "correct the arguments" : said };
}

/** For refusals that come without advice of their own. */
const ADVICE: Readonly<Record<Refusal, string>> = {
  "outside-roots": "use paths below the granted folders, which agentbox://grants lists",
  "not-granted": "do without, or ask the user to grant it; agentbox://grants lists what is granted",
  hidden: "do without hidden and system files, or ask the user to grant them",
  "malformed-path": "correct the path",
  link: "use the path of the file itself",
  "hard-link": "do without this file, or ask the user to grant files with several names",
  "special-file": "use regular files and directories only",
  "cross-root": "write a new file in the other folder instead",
  rule: "do without; agentbox://policy lists the rules",
  declined: "do not try again without asking the user why",
  unanswered: "ask the user to answer: agentbox confirm list",
  quota: "write less; the session's limit is reached",
  audit: "tell the user that the audit log cannot be written",
  "no-session": "tell the user that the session has ended",
};
