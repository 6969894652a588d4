import type { Complaint } from "../policy/errors.ts";
import { quote } from "../policy/parsed.ts";

/** A command about what the file guard asks. `prompt` is an id, the beginning of one, or `SESSION/ID`. */
export type ConfirmCommand =
  | { verb: "confirm list"; json: boolean }
  | { verb: "confirm approve"; prompt: string; scope: "once" | "session" | "rule" }
  | { verb: "confirm deny"; prompt: string };

type Reading = {
  verb: ConfirmCommand["verb"];
  /** What stands after the verb. */
  words: readonly string[];
  has: (name: string) => boolean;
  complaints: Complaint[];
};

/** Reads the words and options of a verb about the prompts of the file guard. */
export function readConfirmCommand({ verb, words, has, complaints }: Reading): ConfirmCommand {
  const [prompt, ...rest] = verb === "confirm list" ? ["", ...words] : words;
  if (prompt === undefined) complaints.push({ what: `${verb} needs the id of a prompt`, expected: `agentbox ${verb} ID`, fix: "agentbox confirm list shows what waits" });
  complaints.push(...rest.map((stray) => ({ what: `${quote(stray)} is one word too many`, fix: verb === "confirm list" ? "leave it out" : "answer one prompt at a time" })));
  if (has("session") && has("always")) complaints.push({ what: "--session and --always exclude each other", fix: "keep one of them" });
  switch (verb) {
    case "confirm list":
      return { verb, json: has("json") };
    case "confirm approve":
      return { verb, prompt: prompt ?? "", scope: has("always") ? "rule" : has("session") ? "session" : "once" };
    case "confirm deny":
      return { verb, prompt: prompt ?? "" };
  }
}
