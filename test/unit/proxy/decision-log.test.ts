import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { readDecisionFiles } from "../../../cli/log/decision-files.ts";
import { decisionRecordSchema, type DecisionRecord } from "../../../policy/decision-record.ts";
import { DecisionLog } from "../../../proxy/log/decision-log.ts";
import { LogFile } from "../../../proxy/log/log-file.ts";
import { PENDING_FILES, renderPending } from "../../../policy/pending-lines.ts";
import { PendingFile } from "../../../proxy/log/pending-file.ts";
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

  test("what is counted when its process is killed is there for readers, and becomes lines of the next process", async () => {
    // Never closed: nobody tells it that its box ends.
    const killed = new DecisionLog(new LogFile(dir), { pending: new PendingFile(dir) });
    killed.start("s1");
    const now = Date.now();
    for (let index = 0; index < 5; index += 1) note(killed, "a.example", now + index);
    killed.addTraffic({ protocol: "https-connect", method: null, host: "b.example", port: 443, cut: false }, { bytesUp: 7, bytesDown: 9, durationMs: 1 }, now);
    await vi.waitFor(() => expect(readDecisionFiles(join(dir, "decisions.jsonl")).records).toMatchObject([{ seq: 0, count: 1 }, { seq: 1, host: "a.example", count: 4 }, { seq: 2, kind: "traffic", bytesDown: 9 }]));
    expect(readDecisionFiles(join(dir, "decisions.jsonl"), { withPending: false }).records).toHaveLength(1);

    const next = new DecisionLog(new LogFile(dir), { pending: new PendingFile(dir) });
    next.start("s1");
    note(next, "c.example", now);
    next.close();
    expect(read()).toMatchObject([{ seq: 0, count: 1 }, { seq: 1, host: "a.example", count: 4 }, { seq: 2, kind: "traffic" }, { seq: 3, host: "c.example" }]);
    expect(readdirSync(dir)).toEqual(["decisions.jsonl"]);
  });

  test("a count of another session is none of this one's", () => {
    writeFileSync(join(dir, PENDING_FILES[0]), renderPending(7, [JSON.stringify({ kind: "decision", seq: 4, session: "s0" }), '{"half']));
    const log = new DecisionLog(new LogFile(dir), { pending: new PendingFile(dir) });
    log.start("s1");
    note(log, "a.example", 1);
    log.close();
    expect(read()).toMatchObject([{ seq: 0, host: "a.example" }]);
  });

  test("a file that was removed or moved away is made anew; a directory that is gone fails the log", async () => {
    const log = start();
    note(log, "a.example", Date.now());
    rmSync(join(dir, "decisions.jsonl"));
    await vi.waitFor(() => expect(existsSync(join(dir, "decisions.jsonl"))).toBe(true));
    note(log, "b.example", Date.now());
    expect(read()).toMatchObject([{ seq: 1, host: "b.example" }]);
    rmSync(dir, { recursive: true });
    await vi.waitFor(() => expect(log.failing).toContain("cannot be written"));
    mkdirSync(dir);
    await vi.waitFor(() => expect(log.failing).toBeUndefined());
    log.close();
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
