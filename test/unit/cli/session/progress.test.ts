import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { followProgress } from "../../../../cli/session/progress.ts";
import type { BootEvent } from "../../../../policy/boot-event.ts";

let directory: string;
let file: string;

beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), "agentbox-progress-"));
  file = path.join(directory, "progress.jsonl");
});

afterEach(() => rmSync(directory, { recursive: true }));

const start: BootEvent = { event: "start", step: "ärger" };
const ready: BootEvent = { event: "ready", text: "firewall on", ms: 3 };

function follow(signal = new AbortController().signal): { seen: BootEvent[]; last: Promise<BootEvent | undefined> } {
  const seen: BootEvent[] = [];
  return { seen, last: followProgress({ file, report: (event) => seen.push(event), signal }) };
}

test("waits for the file, and reads lines that are written in pieces, letters included", async () => {
  const { seen, last } = follow();
  await sleep(40);
  for (const byte of Buffer.from(`${JSON.stringify(start)}\n`)) {
    appendFileSync(file, Buffer.from([byte]));
    if (byte > 127) await sleep(30);
  }
  appendFileSync(file, `${JSON.stringify(ready)}\n`);
  expect(await last).toEqual(ready);
  expect(seen).toEqual([start, ready]);
});

test("ends with the failure of the box", async () => {
  appendFileSync(file, `${JSON.stringify({ event: "failed", step: "rules", text: "no", exitCode: 70 })}\n`);
  expect(await follow().last).toMatchObject({ event: "failed", exitCode: 70 });
});

test("still reports what was written before the box ended without a word", async () => {
  appendFileSync(file, `${JSON.stringify(start)}\n`);
  const { seen, last } = follow(AbortSignal.abort());
  expect(await last).toBeUndefined();
  expect(seen).toEqual([start]);
});

test("takes a line that is no event for a failure, not for a ready box", async () => {
  appendFileSync(file, '{"event":"ready"}\n');
  await expect(follow().last).rejects.toThrow(/unreadable/);
});
