import { describe, expect, test } from "vitest";
import { renderHelp } from "../../../cli/args-help.ts";
import { parseCommandLine } from "../../../cli/args.ts";

function parse(argv: readonly string[]) {
  return parseCommandLine(argv, { agents: ["claude", "codex"], checkPath: () => undefined, firewall: undefined, log: undefined });
}

describe("the stand-alone proxy", () => {
  test.each([
    { name: "runs by the project's file", argv: ["proxy"], expected: { verb: "proxy", file: undefined, logDir: undefined, approve: false } },
    { name: "runs by a file, logs elsewhere, and asks", argv: ["proxy", "--config", "x.toml", "--log", "/l", "--approve"], expected: { verb: "proxy", file: "x.toml", logDir: "/l", approve: true } },
    { name: "is asked how it is", argv: ["proxy", "ctl", "health", "--json"], expected: { verb: "proxy ctl", request: { op: "health" }, json: true } },
    { name: "is asked with the file in front of the word", argv: ["proxy", "ctl", "--config", "x.toml", "config"], expected: { verb: "proxy ctl", file: "x.toml", request: { op: "config" } } },
    { name: "is asked what was refused", argv: ["proxy", "ctl", "blocked", "--after", "7"], expected: { request: { op: "blocked", after: 7 } } },
    { name: "is told another mode", argv: ["proxy", "ctl", "mode", "limited"], expected: { request: { op: "mode", mode: "limited" } } },
    { name: "is told hosts, in canonical form", argv: ["proxy", "ctl", "allow", "A.example:443", "[2001:db8::1]:80"], expected: { request: { op: "allow", hosts: ["a.example", "[2001:db8::1]:80"] } } },
    { name: "has a help", argv: ["proxy", "--help"], expected: { verb: "help", topic: "proxy" } },
    { name: "has one of its words", argv: ["help", "proxy", "ctl"], expected: { verb: "help", topic: "proxy ctl" } },
  ])("$name", ({ argv, expected }) => {
    expect(parse(argv)).toMatchObject(expected);
  });

  test.each([
    { name: "a word that is none", argv: ["proxy", "clt"], said: /proxy "clt" is no command; expected ctl, seatbelt-profile; fix: did you mean proxy ctl\?/ },
    { name: "ctl without a word", argv: ["proxy", "ctl"], said: /proxy ctl needs a word that says what to do; expected agentbox proxy ctl health\|/ },
    { name: "a word of ctl that is none", argv: ["proxy", "ctl", "relaod"], said: /proxy ctl "relaod" is no command.*did you mean reload\?/ },
    { name: "a mode that is none", argv: ["proxy", "ctl", "mode", "open"], said: /"open" is no mode; expected limited/ },
    { name: "no mode", argv: ["proxy", "ctl", "mode"], said: /mode needs a word/ },
    { name: "no host", argv: ["proxy", "ctl", "allow"], said: /allow needs a host/ },
    { name: "a host that is none", argv: ["proxy", "ctl", "allow", "https://a.example"], said: /"https:\/\/a\.example" has the scheme/ },
    { name: "every host", argv: ["proxy", "ctl", "allow", "*"], said: /"\*" opens every host/ },
    { name: "a word too many", argv: ["proxy", "ctl", "health", "now"], said: /"now" is one word too many/ },
    { name: "a number that is none", argv: ["proxy", "ctl", "blocked", "--after", "x"], said: /--after "x" is not the number of a line/ },
    { name: "a number where it means nothing", argv: ["proxy", "ctl", "health", "--after", "1"], said: /--after means nothing to health/ },
    { name: "an option of a box", argv: ["proxy", "--network", "x"], said: /--network has no meaning for proxy/ },
    { name: "an option of the proxy for a box", argv: ["claude", "--approve"], said: /--approve has no meaning/ },
    { name: "arguments behind --", argv: ["proxy", "--", "x"], said: /proxy takes nothing after --/ },
  ])("refuses $name", ({ argv, said }) => {
    expect(() => parse(argv)).toThrow(said);
  });

  test("its help names its words and its own options", () => {
    const help = renderHelp("proxy", ["claude"], 100);
    expect(help).toMatch(/agentbox proxy ctl WORD/);
    expect(help).toMatch(/Options of agentbox proxy\n.*--config FILE.*--approve/s);
  });
});
