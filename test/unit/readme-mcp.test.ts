import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { parseCommandLine } from "../../cli/args.ts";

const readme = readFileSync(path.join(import.meta.dirname, "../../README.md"), "utf8");

/** The words that each client of the README starts, without the program's own. */
function findLines(): { client: string; argv: string[] }[] {
  return readme.split("\n").flatMap((row) => {
    const [, client = "", line = ""] = row.split("|").map((cell) => cell.trim());
    if (!/\bmcp\b/.test(line) || !line.includes("--grant")) return [];
    const list = /"?args"?(?: =|:) (?<words>\[[^\]]*\])/.exec(line)?.groups?.["words"];
    const typed = /-- agentbox (?<words>[^`]*)`/.exec(line)?.groups?.["words"];
    return [{ client, argv: list === undefined ? (typed ?? "").split(" ") : JSON.parse(list) }];
  });
}

describe("the lines that the README shows for MCP clients", () => {
  test("are there for Claude Code, Codex and any other", () => {
    expect(findLines().map(({ client }) => client)).toEqual(["Claude Code", "Codex", "any other"]);
  });

  test.each(findLines())("start the file guard: $client", ({ argv }) => {
    const surroundings = { agents: ["claude"], checkPath: () => undefined, firewall: undefined, log: undefined };
    expect(parseCommandLine(argv, surroundings)).toEqual({ verb: "mcp", session: "NAME", socket: undefined, grants: [{ root: "DIR", access: { read: true, write: true, create: true, delete: false } }] });
  });
});
