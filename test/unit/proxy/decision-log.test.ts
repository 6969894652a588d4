import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { decisionRecordSchema, type DecisionRecord } from "../../../policy/decision-record.ts";
import { DecisionLog } from "../../../proxy/log/decision-log.ts";
import { LogFile } from "../../../proxy/log/log-file.ts";
import type { LineFacts } from "../../../proxy/log/line.ts";

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "agentbox-log-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const start = (maxBytes?: number): DecisionLog => {
  const log = new DecisionLog(new LogFile(dir, maxBytes));
  log.start("s1");
  return log;
};
const facts = (host: string): LineFacts => ({ action: "deny", host, reason: "not_allowed", rule: undefined, type: "A", addresses: "", detail: undefined });
const note = (log: DecisionLog, host: string, now: number): void => log.count(log.tally(host, facts(host)), now);
const readLines = (file: string): DecisionRecord[] => readFileSync(join(dir, file), "utf8").trimEnd().split("\n").map((text) => decisionRecordSchema.parse(JSON.parse(text)));
const read = (): DecisionRecord[] => readLines("decisions.jsonl");

describe("the decision log", () => {
  test("writes the first of a window at once and the further ones as one line", () => {
    const log = start();
    for (let index = 0; index < 5; index += 1) note(log, "a.example", 1000 + index);
    expect(read()).toMatchObject([{ host: "a.example", count: 1, seq: 0 }]);
    note(log, "a.example", 12_000);
    log.close();
    expect(read()).toMatchObject([{ count: 1 }, { count: 4 }, { count: 1 }]);
  });

  test("numbers go on after a restart, and a line that was cut short is removed", () => {
    const first = start();
    note(first, "a.example", 1);
    first.close();
    appendFileSync(join(dir, "decisions.jsonl"), '{"kind":"dec');
    const second = start();
    note(second, "b.example", 2);
    second.close();
    expect(read().map(({ seq }) => seq)).toEqual([0, 1]);
  });

  test("rotates by size, keeps three older files, and loses no number", () => {
    const log = start(1000);
    for (let index = 0; index < 40; index += 1) note(log, `host${index}.example`, index);
    log.close();
    const seqs = ["decisions.jsonl.3", "decisions.jsonl.2", "decisions.jsonl.1", "decisions.jsonl"].flatMap((file) => readLines(file).map(({ seq }) => seq));
    expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, index) => 40 - seqs.length + index));
    expect(existsSync(join(dir, "decisions.jsonl.4"))).toBe(false);
  });

  test("a flood of refused names is bounded; allowed ones are still written", () => {
    const log = start();
    for (let index = 0; index < 10_000; index += 1) note(log, `host${index}.example`, 1000);
    log.count(log.tally("good", { ...facts("good.example"), action: "allow" }), 1000);
    const lines = read();
    expect(lines.length).toBeLessThan(3000);
    expect(lines.at(-1)).toMatchObject({ host: "good.example" });
    log.close();
  });

  test("control characters of a name cannot make a line of their own", () => {
    const log = start();
    note(log, "a\n{\u0007}\u202e.example", 1);
    log.close();
    const text = readFileSync(join(dir, "decisions.jsonl"), "utf8");
    expect(text.split("\n")).toHaveLength(2);
    expect(text).not.toContain("\u0007");
    expect(text).not.toContain("\u202e");
  });
});
