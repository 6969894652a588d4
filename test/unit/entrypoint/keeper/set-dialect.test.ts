import { describe, expect, it } from "vitest";
import { saysFull, SET_DIALECTS } from "../../../../entrypoint/keeper/set-dialect.ts";

// Texts of nft 1.0.6 and ipset 7.17.
const ELEMENT = "element inet agentbox agentbox-learned-4 { 192.0.2.1 . tcp . 443 }";
const POINTER = "                                           ^^^^^^^^^^^^^^^^^^^^^";
const ABSENT = "Error: Could not process rule: No such file or directory";

describe("what nft answers", () => {
  const rows: [string, string[], string[]][] = [
    ["says nothing of an element that was to go and is gone", [ABSENT, `delete ${ELEMENT}`, POINTER], []],
    ["complains of one that is gone where others were to go with it", [ABSENT, `delete ${ELEMENT.replace(" }", ", 192.0.2.2 . tcp . 443 }")}`, POINTER], [ABSENT]],
    ["complains of one that is gone where it was to come back", [ABSENT, `delete ${ELEMENT}; add ${ELEMENT}`, POINTER], [ABSENT]],
    ["complains of a set that is missing", [ABSENT, `add ${ELEMENT}`, POINTER], [ABSENT]],
    ["complains of a set that is missing, also where something was to go", ["Error: No such file or directory; did you mean set ‘s’ in table inet ‘agentbox’?", `delete ${ELEMENT}`, POINTER], ["Error: No such file or directory; did you mean set ‘s’ in table inet ‘agentbox’?"]],
    ["complains of a set without room", ["Error: Could not process rule: Too many open files in system", `add ${ELEMENT}`, POINTER], ["the set is full: add element inet agentbox agentbox-learned-4"]],
    ["complains of what it does not understand", ["Error: syntax error, unexpected newline", "add element", "           ^"], ["Error: syntax error, unexpected newline"]],
    ["complains of an error that stands alone", ["Error: something new"], ["Error: something new"]],
    ["complains in words that nobody knows", ["netlink: something new"], ["netlink: something new"]],
    ["tells each of several errors", [ABSENT, `delete ${ELEMENT}`, POINTER, ABSENT, `add ${ELEMENT}`, POINTER], [ABSENT]],
  ];
  it.each(rows)("%s", (_case, lines, complaints) => {
    expect(collect("nft", lines)).toEqual(complaints);
  });
});

it("every line that ipset says is a complaint", () => {
  const full = "ipset v7.17: Error in line 1: Hash is full, cannot add more elements";
  expect(collect("ipset", [full, ""])).toEqual([full]);
  expect([full, ...collect("nft", ["Error: Could not process rule: Too many open files in system", `add ${ELEMENT}`])].map(saysFull)).toEqual([true, true]);
});

/** Reads an answer as the child does: each line with the one before it, and at last the end. */
function collect(backend: "ipset" | "nft", lines: readonly string[]): string[] {
  return [...lines, ""].flatMap((line, index) => SET_DIALECTS[backend].complain(line, lines[index - 1] ?? "") ?? []);
}
