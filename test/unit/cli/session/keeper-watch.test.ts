import { mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ALIVE_FILE, watchKeeper } from "../../../../cli/session/keeper-watch.ts";

// The watch looks every 5 ms here; a test waits for what it does, or for many more looks than it needs.
const pollMs = 5;
const manyLooks = 400;

let log: string;
let file: string;
let gone: string[];
let asked: number;
let stops: (() => Promise<void>)[];
let touching: NodeJS.Timeout | undefined;

beforeEach(() => {
  log = mkdtempSync(path.join(tmpdir(), "agentbox alive "));
  file = path.join(log, ALIVE_FILE);
  gone = [];
  asked = 0;
  stops = [];
});

afterEach(async () => {
  clearInterval(touching);
  await Promise.all(stops.map(async (stop) => await stop()));
  rmSync(log, { recursive: true, force: true });
});

function watch({ ready = false, answer = async () => "no such process" }: { ready?: boolean; answer?: () => Promise<string | undefined> } = {}): void {
  const ask = async (): Promise<string | undefined> => {
    asked += 1;
    return await answer();
  };
  stops.push(watchKeeper({ log, ready, ask, onGone: (reason) => gone.push(reason), pollMs }));
}

let touches = 0;
function touch(): void {
  writeFileSync(file, "", { flag: "a" });
  touches += 1;
  utimesSync(file, touches, touches);
}

async function awaitTruth(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(pollMs);
}

describe("a keeper that falls silent", () => {
  test("is asked twice, and gone once when it does not answer", async () => {
    touch();
    watch();
    await awaitTruth(() => gone.length > 0);
    expect({ gone, asked }).toEqual({ gone: ["no such process"], asked: 2 });
  });

  test("is not gone while it answers, however full its disk is", async () => {
    touch();
    watch({ answer: async () => undefined });
    await awaitTruth(() => asked > 2);
    expect(gone).toEqual([]);
  });

  test("is not gone where a sign of life comes before the second answer", async () => {
    touch();
    let late = 0;
    watch({ answer: async () => ((late += 1) === 1 ? (touch(), "the engine was too slow") : undefined) });
    await awaitTruth(() => asked > 1);
    expect(gone).toEqual([]);
  });

  test("is gone although somebody puts new files in the place of its own", async () => {
    touch();
    watch();
    await sleep(pollMs * 4);
    touching = setInterval(() => {
      writeFileSync(`${file}.other`, "");
      renameSync(`${file}.other`, file);
    }, 1);
    await awaitTruth(() => gone.length > 0);
    expect(asked).toBeGreaterThan(0);
  });

  test("is gone where it never wrote, when the box was ready", async () => {
    watch({ ready: true });
    await awaitTruth(() => gone.length > 0);
    expect(asked).toBe(2);
  });

  test("is gone where it never wrote, when the box has decided something", async () => {
    watch();
    writeFileSync(path.join(log, "decisions.jsonl"), "");
    await awaitTruth(() => gone.length > 0);
    expect(asked).toBe(2);
  });
});

test("a keeper that touches its file is never asked", async () => {
  touch();
  touching = setInterval(touch, 1);
  watch({ ready: true });
  await sleep(manyLooks);
  expect({ gone, asked }).toEqual({ gone: [], asked: 0 });
});

test("a box that still starts is left to tell itself why it does not", async () => {
  watch();
  await sleep(manyLooks);
  expect({ gone, asked }).toEqual({ gone: [], asked: 0 });
});

test("nothing is told after the end", async () => {
  touch();
  const late = Promise.withResolvers<string>();
  watch({ answer: async () => await late.promise });
  await awaitTruth(() => asked > 0);
  const ended = stops.map(async (stop) => await stop());
  late.resolve("no such process");
  await Promise.all(ended);
  expect(gone).toEqual([]);
});
