import type { Complaint } from "../policy/errors.ts";
import { quote } from "../policy/parsed.ts";

/** A command about the audit log of the file guard. `session` is an id or the beginning of one, `target` that or a file; undefined is the newest. */
export type AuditCommand =
  | { verb: "audit show"; session: string | undefined; task: string | undefined; json: boolean; follow: boolean }
  | { verb: "audit verify"; target: string | undefined; head: string | undefined }
  | { verb: "audit summary"; session: string | undefined; task: string | undefined; json: boolean };

type Reading = {
  verb: AuditCommand["verb"];
  /** What stands after the verb. */
  words: readonly string[];
  has: (name: string) => boolean;
  value: (name: string) => string | undefined;
  complaints: Complaint[];
};

/** Reads the words and options of a verb about the audit log. */
export function readAuditCommand({ verb, words, has, value, complaints }: Reading): AuditCommand {
  const [word, ...rest] = words;
  complaints.push(...rest.map((stray) => ({ what: `${quote(stray)} is one word too many`, fix: `leave it out, or see agentbox help ${verb}` })));
  switch (verb) {
    case "audit show":
      return { verb, session: word, task: value("task"), json: has("json"), follow: has("follow") };
    case "audit verify":
      return { verb, target: word, head: readHead(value("head"), complaints) };
    case "audit summary":
      return { verb, session: word, task: value("task"), json: has("json") };
  }
}

function readHead(text: string | undefined, complaints: Complaint[]): string | undefined {
  const head = text?.toLowerCase();
  if (head !== undefined && !/^[0-9a-f]{64}$/.test(head)) complaints.push({ what: `--head ${quote(head)} is no head of an audit log`, expected: "64 hexadecimal digits", fix: "agentbox audit show tells the head of a log" });
  return head;
}
