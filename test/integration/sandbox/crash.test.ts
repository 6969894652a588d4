import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { verifyChain } from "../../../sandbox/audit-chain.ts";
import type { AuditEntry } from "../../../sandbox/audit-entry.ts";
import { readAuditEntries, readAuditLines } from "../../../sandbox/audit-reader.ts";
import { Sandbox } from "../../../sandbox/sandbox.ts";
import { bundleFixture } from "./bundle-fixture.ts";
import { everything } from "./guarded-tree.ts";

const PLACES = 4;
const SESSIONS = 5;
const KILLS = 10;
/** Operations that a writer gets before it is killed, however slow the machine is, and how long it then goes on. */
const MOST_OPERATIONS = 12;
const MOST_MS = 10;

let top: string;
let writer: string;
beforeEach(async () => {
  top = realpathSync(mkdtempSync(join(tmpdir(), "agentbox-crash-")));
  writer = await bundleFixture("sandbox-writer", top);
});
afterEach(() => rmSync(top, { recursive: true }));

type Place = { home: string; root: string };

/** Numbers from 0 to 1 that are the same in each run of the test (mulberry32). */
function* makeChances(seed: number): Generator<number, never, undefined> {
  for (let state = seed; ; ) {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    yield ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
}

async function runAndKill({ home, root }: Place, session: string, chances: Generator<number, never, undefined>): Promise<void> {
  const child = spawn(process.execPath, [writer, home, root, session], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  let left = chances.next().value * MOST_OPERATIONS;
  const enough = new Promise<void>((resolve) => child.stdout.on("data", (dots: Buffer) => (left -= dots.length) > 0 || resolve()));
  await Promise.race([enough, ended]);
  await setTimeout(chances.next().value * MOST_MS);
  child.kill("SIGKILL");
  // A writer that ended by itself could not go on where the one before was killed.
  expect((await ended)[1]).toBe("SIGKILL");
}

/** Files whose bytes are not one number again and again in one of the lengths that are written. */
function findHalf(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) => {
    const isOther = !statSync(join(root, name)).isFile() || name.endsWith(".json") || /(?:^|\/)\.agentbox-[0-9a-f]{24}$/.test(name);
    if (isOther) return false;
    const text = readFileSync(join(root, name), "utf8");
    return text !== text.slice(0, 8).repeat(Number(text.slice(0, 8)) % 2 === 0 ? 512 : 60_000);
  });
}

/** The log holds up to its last whole line, and has a request for everything that happened. */
function checkLog({ home, root }: Place, session: string): AuditEntry[] {
  const file = join(home, "guard", session, "audit.jsonl");
  const report = verifyChain(readAuditLines(file));
  expect(["torn", undefined]).toContain(report.broken?.kind);
  expect(report.entries).toBe(readFileSync(file, "latin1").split("\n").length - 1);
  const entries = [...readAuditEntries(file)];
  const created = new Set(entries.filter(({ kind, intent }) => kind === "request" && intent === "create").map(({ path }) => path));
  const made = readdirSync(root).filter((name) => name.startsWith("made-"));
  expect(made.filter((name) => !created.has(join(root, name)) && statSync(join(root, name)).mtimeMs > statSync(file).birthtimeMs)).toEqual([]);
  return entries;
}

/** Between link and unlink a moved file has both names; a user removes one. */
function settleMove(root: string): void {
  const [here, there] = [join(root, "moved"), join(root, "sub/moved")];
  if (!existsSync(here)) linkSync(there, here);
  if (existsSync(there)) unlinkSync(there);
}

async function goOn({ home, root }: Place, sessionId: string): Promise<void> {
  const sandbox = new Sandbox({ sessionId, agentboxHome: home });
  sandbox.grant({ root, access: everything });
  await sandbox.files.writeFile({ sessionId, taskId: "last", path: join(root, `last-${sessionId}`), intent: "create", content: "00000000".repeat(512) });
  expect(await sandbox.endTask("last")).toMatchObject({ counts: { created: 1, unknown: 0 } });
  await sandbox.close();
  expect(verifyChain(readAuditLines(join(home, "guard", sessionId, "audit.jsonl")))).toMatchObject({ broken: undefined, closed: true });
}

async function crashAgain(number: number): Promise<{ killed: number; begun: number; unfinished: number }> {
  const place = { home: join(top, `home-${number}`), root: join(top, `root-${number}`) };
  mkdirSync(join(place.root, "sub"), { recursive: true });
  const chances = makeChances(number + 1);
  const sums = { killed: 0, begun: 0, unfinished: 0 };
  for (let session = 0; session < SESSIONS; session += 1) {
    let entries: AuditEntry[] = [];
    for (let kill = 0; kill < KILLS; kill += 1) {
      await runAndKill(place, `s${session}`, chances);
      sums.killed += 1;
      expect(findHalf(place.root)).toEqual([]);
      entries = checkLog(place, `s${session}`);
      settleMove(place.root);
    }
    const ended = new Set(entries.filter(({ kind }) => kind === "outcome").map(({ of }) => of));
    sums.begun += entries.filter(({ kind }) => kind === "request").length;
    sums.unfinished += entries.filter(({ kind, seq }) => kind === "request" && !ended.has(seq)).length;
    await goOn(place, `s${session}`);
  }
  return sums;
}

test("two hundred guards that are killed leave every file old or new, and a log that holds and is gone on with", { timeout: 300_000 }, async () => {
  const sums = await Promise.all(Array.from({ length: PLACES }, async (_, number) => await crashAgain(number)));
  const total = (name: "killed" | "begun" | "unfinished") => sums.reduce((sum, one) => sum + one[name], 0);
  expect(total("killed")).toBe(200);
  // Else they were killed before or between operations, and nothing was shown.
  expect(total("begun")).toBeGreaterThan(1000);
  expect(total("unfinished")).toBeGreaterThan(50);
});
