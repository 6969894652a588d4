import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { verifyChain } from "../../../sandbox/audit-chain.ts";
import { AuditLogger } from "../../../sandbox/audit-logger.ts";
import { readAuditEntries, readAuditLines } from "../../../sandbox/audit-reader.ts";
import { summarizeTasks } from "../../../sandbox/task-summary.ts";
import { bundleFixture } from "./bundle-fixture.ts";

const LOGS = 8;
/** Logs that are written at once, each by one process after the other. */
const LANES = 4;
const KILLS = 5;

let root: string;
let writer: string;
beforeEach(async () => {
  root = mkdtempSync(path.join(tmpdir(), "agentbox-audit-"));
  writer = await bundleFixture("audit-writer", root);
});
afterEach(() => rmSync(root, { recursive: true }));

/** Kills a writer at a random moment after it opened the log, or while it does. */
async function runAndKill(directory: string, operations: string): Promise<void> {
  const child = spawn(process.execPath, [writer, "race", directory, operations], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "close");
  if (Math.random() < 0.9) await Promise.race([once(child.stdout, "data"), ended]);
  await sleep(Math.random() * 30);
  expect(child.exitCode).toBeNull();
  child.kill("SIGKILL");
  await ended;
}

/** Kills one writer of a log after the other, goes on with it, and tells what it holds. */
async function killAllOf(log: number): Promise<{ entries: number; operated: number }> {
  const directory = path.join(root, String(log), "guard");
  const file = path.join(directory, "audit.jsonl");
  const operations = path.join(root, `operations-${log}`);
  for (let kill = 0; kill < KILLS; kill += 1) {
    await runAndKill(directory, operations);
    // Killed before there was a log: nothing was done either.
    if (!readdirSync(root).includes(String(log)) || !readdirSync(directory).includes("audit.jsonl")) continue;
    const report = verifyChain(readAuditLines(file));
    expect(["torn", "cut-off", undefined]).toContain(report.broken?.kind);
    expect(report.entries).toBe(readFileSync(file, "latin1").split("\n").length - 1);
  }
  const logger = new AuditLogger({ directory, session: "s" });
  logger.begin({ taskId: "last", path: "/w/last", intent: "read" }).end({ outcome: "done" });
  await logger.close();
  const report = verifyChain(readAuditLines(file));
  expect(report).toMatchObject({ broken: undefined, closed: true });
  const found = [...readAuditEntries(file)];
  const requests = new Set(found.filter(({ kind }) => kind === "request").map(({ seq }) => seq));
  const done = readdirSync(root).includes(`operations-${log}`) ? readFileSync(operations, "utf8").trimEnd().split("\n").map(Number) : [];
  expect(done.filter((seq) => !requests.has(seq))).toEqual([]);
  const ended = found.filter(({ kind }) => kind === "outcome").length;
  const summaries = summarizeTasks(found);
  expect(summaries.reduce((sum, { counts }) => sum + counts.unknown, 0)).toBe(requests.size - ended);
  expect(summaries.at(-1)).toMatchObject({ taskId: "last", counts: { read: 1, unknown: 0 } });
  return { entries: report.entries, operated: done.length };
}

test("40 killed writers leave logs that hold up to the last whole entry, have a line for every operation, and go on", { timeout: 300_000 }, async () => {
  const logs = Array.from({ length: LOGS }, (_, log) => log).values();
  let entries = 0;
  let operated = 0;
  const work = async (): Promise<void> => {
    // Lanes share the iterator: each takes the next log that nobody has.
    for (const log of logs) {
      const found = await killAllOf(log);
      entries += found.entries;
      operated += found.operated;
    }
  };
  await Promise.all(Array.from({ length: LANES }, work));
  // Else the writers were killed before they wrote, and nothing was shown.
  expect(operated).toBeGreaterThan(1000);
  expect(entries).toBeGreaterThan(2 * operated - LOGS * KILLS * 8);
});
