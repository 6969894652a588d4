import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DYNAMIC, readScript } from "../../../policy/command-line.ts";
import { readOptions } from "../../../policy/command-options.ts";
import { unwrapCommand } from "../../../policy/command-wrapper.ts";

function unwrap(script: string): { commands: string[][]; scripts: readonly string[] } | undefined {
  const [command] = readScript(script).commands;
  const found = command === undefined ? undefined : unwrapCommand(command);
  return found === undefined ? undefined : { commands: found.commands.map(({ words }) => [...words]), scripts: found.scripts };
}

const wordsOf = (script: string): string[][] => readScript(script).commands.map(({ words }) => [...words]);

describe("the commands of a script", () => {
  test.each<[string, string, string[][]]>([
    ["words, with quotes and escapes taken off", `a 'b c' "d e" f\\ g $'h\\x41'`, [["a", "b c", "d e", "f g", "hA"]]],
    ["pipes, lists and jobs", "a | b && c || d; e & f", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]],
    ["groups, conditions and loops", "{ a; }; (b); if c; then d; fi; for x in 1; do e; done; while f; do g; done; case x in y) h;; esac", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"], ["g"], ["h"]]],
    ["functions and what is negated or timed", "f() { a; }; ! b; time c", [["a"], ["b"], ["c"]]],
    ["substitutions, after the command that they stand in", "a $(b) `c` <(d) \"$(e)\"", [["a", DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC], ["b"], ["c"], ["d"], ["e"]]],
    ["nothing of comments and of quoted commands", "# a\necho '$(b)' # c", [["echo", "$(b)"]]],
    ["what only a run would know, as such", 'a $x "b${y}c" {d,e} *.f $((1+1))', [["a", DYNAMIC, `b${DYNAMIC}c`, DYNAMIC, "*.f", DYNAMIC]]],
    ["a question mark of a URL as it is", "a https://b.example/c?d=e", [["a", "https://b.example/c?d=e"]]],
    ["what stands in front of a mistake", "a b; c 'd", [["a", "b"], ["c", "d"]]],
    ["what is declared", "export A=b C", [["export", "A=b", "C"]]],
  ])("are %s", (_row, script, expected) => {
    expect(wordsOf(script)).toEqual(expected);
  });

  test("come with the variables that are set for them", () => {
    expect(readScript("A=1 B=$x a").commands.map(({ variables }) => [...variables])).toEqual([[["A", "1"], ["B", DYNAMIC]]]);
  });

  test.each([
    ["a here-document", "a <<E\nb $c\nE", `b ${DYNAMIC}\n`],
    ["a quoted here-document", "a <<'E'\nb $c\nE", "b $c\n"],
    ["a here-string", "a <<< 'b c'", "b c"],
  ])("come with %s as their input", (_row, script, input) => {
    expect(readScript(script).commands[0]?.input).toBe(input);
  });

  test("have the files of redirections apart", () => {
    expect(readScript("a >b 2>&1 <c; { d; } 3<>/dev/tcp/e/80").files).toEqual(["b", "1", "c", "/dev/tcp/e/80"]);
  });

  test("are none for a text that nobody typed, and not looked for in substitutions without end", () => {
    expect(wordsOf(`a ${"x".repeat(70_000)}`)).toEqual([]);
    expect(wordsOf(`${"$(".repeat(3)}a${")".repeat(3)}`)).toContainEqual(["a"]);
    expect(wordsOf(`${"$(".repeat(60)}a${")".repeat(60)}`)).not.toContainEqual(["a"]);
  });
});

describe("options", () => {
  const form = { valued: new Set(["-o", "--out"]) };
  test.each<[string, string[], [string, string | undefined][], string[]]>([
    ["take their value from the next word", ["-o", "a", "--out", "b", "c"], [["-o", "a"], ["--out", "b"]], ["c"]],
    ["have it attached", ["-oa", "--out=b"], [["-o", "a"], ["--out", "b"]], []],
    ["stand in bundles, the last of which may take a value", ["-abo", "c"], [["-a", undefined], ["-b", undefined], ["-o", "c"]], []],
    ["take no value where none is known", ["-x", "a", "--yes", "b"], [["-x", undefined], ["--yes", undefined]], ["a", "b"]],
    ["end at two dashes", ["-x", "--", "-y"], [["-x", undefined]], ["-y"]],
    ["may lack their value", ["-o"], [["-o", undefined]], []],
    ["are not one dash alone", ["-", "a"], [], ["-", "a"]],
  ])("%s", (_row, words, options, operands) => {
    expect(readOptions(words, form)).toEqual({ options: options.map(([name, value]) => ({ name, value })), operands });
  });

  test("may end at the first operand, and may have one dash for long names", () => {
    expect(readOptions(["-x", "a", "-y"], { ...form, stops: true })).toMatchObject({ operands: ["a", "-y"] });
    expect(readOptions(["-out", "-mod=b"], { valued: new Set(), singleDash: true })).toEqual({ options: [{ name: "-out", value: undefined }, { name: "-mod", value: "b" }], operands: [] });
  });
});

describe("programs that start others", () => {
  test.each<[string, string, string[] | undefined]>([
    ["sudo", "sudo -u me -E A=b curl x", ["curl", "x"]],
    ["env", "/usr/bin/env -i -u X A=b curl x", ["curl", "x"]],
    ["timeout", "timeout -k 5 -s TERM 10s curl x", ["curl", "x"]],
    ["nice", "nice -n 5 curl x", ["curl", "x"]],
    ["command", "command curl x", ["curl", "x"]],
    ["exec", "exec -a name curl x", ["curl", "x"]],
    ["xargs", "xargs -0 -n 1 -P4 curl x", ["curl", "x"]],
    ["xargs with a placeholder", "xargs -I% curl https://%/", ["curl", `https://${DYNAMIC}/`]],
    ["flock", "flock -w 5 lock curl x", ["curl", "x"]],
    ["busybox", "busybox wget x", ["wget", "x"]],
    ["agentbox", "agentbox run -p 80 -- curl x", ["curl", "x"]],
    ["a question where it lies", "command -v curl", undefined],
    ["env alone", "env A=b", undefined],
  ])("are taken off: %s", (_row, script, words) => {
    expect(unwrap(script)).toEqual({ commands: words === undefined ? [] : [words], scripts: [] });
  });

  test.each<[string, string, string[]]>([
    ["of a shell", "bash -c 'curl x'", ["curl x"]],
    ["of a bundle of options", "/bin/sh -euxc 'curl x' name", ["curl x"]],
    ["behind options with values", "bash -eo pipefail +x -lc 'curl x'", ["curl x"]],
    ["of an input", "sh -s <<< 'curl x'", ["curl x"]],
    ["of env -S", "env -S 'curl x' y", ["curl x y"]],
    ["of eval", "eval curl 'x y'", ["curl x y"]],
    ["of watch", "watch -n 1 curl x", ["curl x"]],
    ["none of a file", "bash script.sh -c x", []],
  ])("have a script %s", (_row, script, scripts) => {
    expect(unwrap(script)?.scripts).toEqual(scripts);
  });

  test("have one command for each -exec of find", () => {
    expect(unwrap("find . -exec a {} \\; -o -execdir b {} + -name c")?.commands).toEqual([["a", "{}"], ["b", "{}"]]);
  });

  test("are not other programs", () => {
    expect(unwrap("curl sudo env")).toBeUndefined();
  });
});

test("no text makes the reader throw or hang", () => {
  const piece = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("$(", "`", "'", '"', "<<E", "\nE\n", "((", "))", "{", "}", "|", "&&", ";", "case x in", "esac", "if ", "then ", "fi", "for x in", "do ", "done", "$((", "${", "\\", "\n", "[[", "]]", ">(", "f()", "time ", "coproc ", "\0"));
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
      expect(readScript(pieces.join("")).commands).toEqual(expect.any(Array));
    }),
    { numRuns: 5000 },
  );
  for (const text of ["$(", "`", "((", "{", "(", "if ", "${a:-", "$((", "[[ ( ", "f() { ", '"$(', "a <<E ", "<(", "! ", "time ", "case x in y) "]) expect(readScript(text.repeat(65_536 / text.length)).files).toEqual(expect.any(Array));
});
