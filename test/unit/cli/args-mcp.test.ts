import { describe, expect, test } from "vitest";
import { renderHelp } from "../../../cli/args-help.ts";
import { parseGrant } from "../../../cli/args-mcp.ts";
import { parseCommandLine } from "../../../cli/args.ts";

function parse(argv: readonly string[]) {
  return parseCommandLine(argv, { agents: ["claude", "codex"], checkPath: () => undefined, firewall: undefined, log: undefined });
}

const nothing = { read: false, write: false, create: false, delete: false };

describe("a grant on the command line", () => {
  test.each([
    { name: "r reads", text: "/w:r", expected: { root: "/w", access: { ...nothing, read: true } } },
    { name: "rw reads, writes and makes new files", text: "/w:rw", expected: { root: "/w", access: { ...nothing, read: true, write: true, create: true } } },
    { name: "rwc says the same", text: "/w:rwc", expected: { root: "/w", access: { ...nothing, read: true, write: true, create: true } } },
    { name: "rwcd also deletes", text: "/w:rwcd", expected: { root: "/w", access: { read: true, write: true, create: true, delete: true } } },
    { name: "rd deletes without writing", text: "/w:rd", expected: { root: "/w", access: { ...nothing, read: true, delete: true } } },
    { name: "the last colon counts", text: "/srv/a:b:r", expected: { root: "/srv/a:b", access: { ...nothing, read: true } } },
    { name: "a relative folder stays as written", text: "./out dir:r", expected: { root: "./out dir", access: { ...nothing, read: true } } },
  ])("$name", ({ text, expected }) => {
    expect(parseGrant(text)).toEqual({ ok: true, value: expected });
  });

  test.each([
    { name: "no letters at all", text: "/w", said: /does not say what may be done there/ },
    { name: "nothing after the colon", text: "/w:", said: /"" is not an access/ },
    { name: "no folder", text: ":rw", said: /does not say what may be done there/ },
    { name: "a letter that is none", text: "/w:rx", said: /"rx" is not an access/ },
    { name: "letters in another order", text: "/w:wr", said: /"wr" is not an access/ },
    { name: "a path whose colon is no end", text: "/w:r/sub", said: /"r\/sub" is not an access/ },
  ])("refuses $name", ({ text, said }) => {
    expect(parseGrant(text)).toMatchObject({ ok: false, complaint: { what: expect.stringMatching(said) } });
  });
});

describe("the file guard as a server", () => {
  test.each([
    { name: "runs by the configuration", argv: ["mcp"], expected: { verb: "mcp", session: undefined, grants: [], socket: undefined } },
    { name: "takes a session and several folders", argv: ["mcp", "--session", "s-1", "--grant", "/a:r", "--grant=/b:rw"], expected: { session: "s-1", grants: [{ root: "/a" }, { root: "/b" }] } },
    { name: "serves a socket", argv: ["mcp", "--socket", "/run/x/guard.sock"], expected: { socket: "/run/x/guard.sock" } },
    { name: "has a help", argv: ["mcp", "--help"], expected: { verb: "help", topic: "mcp" } },
  ])("$name", ({ argv, expected }) => {
    expect(parse(argv)).toMatchObject(expected);
  });

  test.each([
    { name: "a session that would be a path", argv: ["mcp", "--session", "../x"], said: /--session "\.\.\/x" is no name of a session/ },
    { name: "two sessions", argv: ["mcp", "--session", "a", "--session", "b"], said: /--session is given more than once/ },
    { name: "a grant that is none", argv: ["mcp", "--grant", "/w:q", "--grant", "/v:r"], said: /--grant "\/w:q": "q" is not an access/ },
    { name: "a word", argv: ["mcp", "serve"], said: /"serve" is one word too many/ },
    { name: "a command after --", argv: ["mcp", "--", "ls"], said: /mcp takes nothing after --/ },
    { name: "a socket without a path", argv: ["mcp", "--socket", ""], said: /--socket names no path/ },
    { name: "grants elsewhere", argv: ["logs", "--grant", "/w:r"], said: /--grant has no meaning for logs/ },
  ])("refuses $name", ({ argv, said }) => {
    expect(() => parse(argv)).toThrow(said);
  });

  test("says in its help what the letters mean", () => {
    expect(renderHelp("mcp", ["claude"], 400)).toMatch(/--grant DIR:LETTERS.*w to write and create/);
  });
});
