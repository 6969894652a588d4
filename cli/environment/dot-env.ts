import { parseEnv } from "node:util";
import type { Complaint } from "../../policy/errors.ts";
import { checkVariable, type Variable } from "./variable.ts";

export type PlacedVariable = Variable & { line: number };
export type DotEnv = { variables: PlacedVariable[]; complaints: Complaint[] };

/** One assignment of the file, which takes several lines where a quoted value does. */
type Block = { line: number; text: string; flaw: string | null };

/**
 * Parses the text of a `.env`. Values are read by Node's own parser, one assignment at a time, since it
 * passes over what it does not understand; here every such line is a complaint. Values are never quoted
 * in messages.
 */
export function parseDotEnv(text: string, file: string): DotEnv {
  const variables: PlacedVariable[] = [];
  const complaints: Complaint[] = [];
  if (text.includes("\0")) return { variables, complaints: [{ what: "the file holds a NUL byte", expected: "text", fix: "save it as UTF-8 text", place: { file } }] };
  for (const { line, text: block, flaw } of splitBlocks(text.replace(/^\u{feff}/u, ""))) {
    const place = { file, line };
    const found = Object.entries(parseEnv(block));
    const [name, value] = found.at(0) ?? [];
    if (flaw !== null || found.length !== 1 || name === undefined || value === undefined) {
      complaints.push({ what: flaw ?? "this line does not set one variable", expected: "NAME=VALUE, a comment or a blank line", fix: "correct or remove the line", place });
      continue;
    }
    const complaint = checkVariable({ name, value }, place);
    if (complaint === null) variables.push({ name, value, line });
    else complaints.push(complaint);
  }
  return { variables, complaints };
}

const ASSIGNMENT = /^\s*(?:export\s+)?([^\s=#'"`]+)\s*=[ \t]*(.*)$/s;

function splitBlocks(text: string): Block[] {
  const lines = text.split(/\r\n|\n|\r/);
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const first = lines[at] ?? "";
    if (/^\s*(#|$)/.test(first)) continue;
    const line = at + 1;
    const value = ASSIGNMENT.exec(first)?.[2];
    if (value === undefined) {
      blocks.push({ line, text: "", flaw: null });
      continue;
    }
    const end = findBlockEnd(lines, at, value);
    blocks.push({ line, text: lines.slice(at, (end ?? at) + 1).join("\n"), flaw: end === null ? "a quote is opened here and never closed" : null });
    at = end ?? at;
  }
  return blocks;
}

/** Finds the line that closes a quoted value; null where none does. */
function findBlockEnd(lines: readonly string[], start: number, value: string): number | null {
  const quote = value.charAt(0);
  if (!["'", '"', "`"].includes(quote) || value.includes(quote, 1)) return start;
  const end = lines.findIndex((line, at) => at > start && line.includes(quote));
  return end === -1 ? null : end;
}
