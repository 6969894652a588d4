import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, chmodSync, cpSync, linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { verifyChain } from "../../../sandbox/audit-chain.ts";
import { AuditFile } from "../../../sandbox/audit-file.ts";
import { AuditLogger } from "../../../sandbox/audit-logger.ts";
import { readAuditEntries, readAuditLines } from "../../../sandbox/audit-reader.ts";

const WRITER = path.join(import.meta.dirname, "../../fixtures/audit-writer.ts");
const ALLOWED = { decision: "allow", ruleId: "inside", tags: [] } as const;

let root: string;
let directory: string;
let file: string;
let opened: AuditLogger[];

beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), "agentbox-audit-"));
  directory = path.join(root, ".agentbox/guard/s");
  file = path.join(directory, "audit.jsonl");
  opened = [];
});
afterEach(async () => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  await Promise.all(opened.map(async (logger) => await logger.close().catch(() => undefined)));
  rmSync(root, { recursive: true, force: true });
});

function open(session = "s"): AuditLogger {
  const logger = new AuditLogger({ directory, session });
  opened.push(logger);
  return logger;
}

const read = (taskId: string, name: string) => ({ taskId, path: name, intent: "read" }) as const;
const refused = expect.objectContaining({ name: "GuardError", refusal: "audit", rule: "audit-log" });

describe("an audit log", () => {
  test("holds request, question, answer and outcome, and is its owner's alone", async () => {
    const logger = open();
    logger.grant({ grant: "g1", path: "/w", rights: ["read", "delete"], expires: "2026-11-22T05:00:00.000Z", by: "config" });
    const operation = logger.begin({ taskId: "t", path: "x/../a", resolvedPath: "/w/a", destinationPath: "/w/b", intent: "move", sizeHint: 9 }, { decision: "confirm", ruleId: "invariant-move", tags: ["move"] });
    operation.confirm({ prompt: "move /w/a to /w/b?", answer: "approved", scope: "session", by: "terminal" });
    operation.end({ outcome: "done", size: 9, digest: "a".repeat(64) });
    // Only the first counts.
    operation.end({ outcome: "failed", code: "EIO" });
    logger.begin(read("t", "/etc/shadow")).end({ outcome: "refused", refusal: "outside-roots", ruleId: "roots" });
    logger.revoke({ grant: "g1", path: "/w", rights: [] });
    await logger.endTask("t");
    const { head } = logger;
    await logger.close();
    expect([...readAuditEntries(file)]).toMatchObject([
      { v: 1, seq: 1, session: "s", kind: "session", event: "opened", prev: "0".repeat(64) },
      { kind: "grant", grant: "g1", path: "/w", rights: ["read", "delete"], expires: "2026-11-22T05:00:00.000Z", by: "config" },
      { kind: "request", task: "t", intent: "move", path: "/w/a", asked: "x/../a", destination: "/w/b", size: 9, decision: "confirm", ruleId: "invariant-move", tags: ["move"] },
      { kind: "confirmation", task: "t", of: 3, prompt: "move /w/a to /w/b?", answer: "approved", scope: "session", by: "terminal" },
      { kind: "outcome", task: "t", of: 3, path: "/w/a", outcome: "done", size: 9, digest: "a".repeat(64) },
      { kind: "request", path: "/etc/shadow" },
      { kind: "outcome", of: 6, outcome: "refused", refusal: "outside-roots", ruleId: "roots" },
      { kind: "revoke", grant: "g1" },
      { kind: "task", task: "t", event: "ended", summary: { counts: { moved: 1, asked: 1, refused: 1 }, tags: ["move"] }, hash: head },
      { kind: "session", event: "closed" },
    ]);
    expect(verifyChain(readAuditLines(file), { head })).toMatchObject({ entries: 10, closed: true, broken: undefined });
    expect([statSync(directory), statSync(file)].map(({ mode }) => mode & 0o777)).toEqual([0o700, 0o600]);
  });

  test("has the line of a request before the operation, and none of its outcome", () => {
    const operation = open().begin(read("t", "/w/a"), ALLOWED);
    expect([...readAuditEntries(file)].at(-1)).toMatchObject({ seq: operation.seq, kind: "request", path: "/w/a" });
  });

  test("goes on where it ended, under the same hash, and takes wide rights away", async () => {
    const first = open();
    first.begin(read("t", "/w/a"));
    await first.close();
    const { head } = first;
    chmodSync(directory, 0o755);
    chmodSync(file, 0o644);
    await open().close();
    expect([...readAuditEntries(file)].slice(3)).toMatchObject([{ seq: 4, kind: "session", event: "resumed", prev: head }, { seq: 5, event: "closed" }]);
    expect([statSync(directory), statSync(file)].map(({ mode }) => mode & 0o777)).toEqual([0o700, 0o600]);
  });

  test("keeps no more of a path than the kernel would take", async () => {
    const logger = open();
    logger.begin({ ...read("t", `/${"\u0001".repeat(1_000_000)}`), destinationPath: "\u{1f600}".repeat(5000) });
    await logger.close();
    expect(readFileSync(file).length).toBeLessThan(100_000);
    expect([...readAuditEntries(file)][1]?.path).toMatch(/… \(1000001 characters\)$/);
    expect(verifyChain(readAuditLines(file))).toMatchObject({ broken: undefined });
  });

  test("loses no entry of 100 tasks side by side", async () => {
    const logger = open();
    const work = async (number: number) => {
      for (let step = 0; step < 20; step += 1) {
        const operation = logger.begin(read(`t${number}`, `/w/${number}/${step}`), ALLOWED);
        await turn();
        operation.end({ outcome: "done", size: number });
      }
      return await logger.endTask(`t${number}`);
    };
    const summaries = await Promise.all(Array.from({ length: 100 }, async (_, number) => await work(number)));
    await logger.close();
    for (const [number, summary] of summaries.entries()) expect(summary).toMatchObject({ counts: { read: 20, unknown: 0 }, bytesRead: 20 * number, leftOut: 0 });
    const entries = [...readAuditEntries(file)];
    expect(entries).toHaveLength(1 + 100 * 41 + 1);
    expect(verifyChain(readAuditLines(file))).toMatchObject({ entries: entries.length, broken: undefined });
    expect(entries.slice(1, 101).map(({ task }) => task)).toEqual(Array.from({ length: 100 }, (_, number) => `t${number}`));
  });

  test("sums a task from the file where there are more than it keeps in mind", async () => {
    const logger = open();
    for (let number = 0; number <= 1001; number += 1) logger.begin(read(`t${number}`, `/w/${number}`)).end({ outcome: "done", size: 3 });
    expect(await logger.endTask("t1001")).toMatchObject({ read: ["/w/1001"], bytesRead: 3, ended: expect.any(String) });
    expect(await logger.endTask("t0")).toMatchObject({ read: ["/w/0"], bytesRead: 3, ended: expect.any(String) });
  });
});

describe("a log that cannot be written refuses the operation:", () => {
  test.each([
    { name: "it was removed", act: () => rmSync(file) },
    { name: "its directory was removed", act: () => rmSync(directory, { recursive: true }) },
    { name: "its directory was renamed", act: () => renameSync(directory, `${directory}-old`) },
    { name: "a copy was put in its place", act: () => (cpSync(file, `${file}.copy`), renameSync(`${file}.copy`, file)) },
    { name: "a link to it was put in its place", act: () => (renameSync(file, `${file}.real`), symlinkSync(`${file}.real`, file)) },
    { name: "another name was made for it", act: () => linkSync(file, path.join(root, "second")) },
    { name: "somebody else wrote into it", act: () => appendFileSync(file, "x") },
    { name: "it was cut off", act: () => truncateSync(file, 10) },
  ])("$name", ({ act }) => {
    const logger = open();
    logger.begin(read("t", "/w/a")).end({ outcome: "done" });
    const under = logger.begin(read("t", "/w/b"));
    act();
    expect(() => logger.begin(read("t", "/w/c"))).toThrow(refused);
    expect(() => under.confirm({ prompt: "?", answer: "approved", scope: "once", by: "callback" })).toThrow(refused);
    expect(() => logger.grant({ grant: "g", path: "/w", rights: [] })).toThrow(refused);
  });

  test("it was closed; an outcome that comes late is no failure, and unknown", async () => {
    const logger = open();
    const late = logger.begin(read("t", "/w/a"));
    await logger.close();
    await logger.close();
    expect(() => logger.begin(read("t", "/w/b"))).toThrow(refused);
    late.end({ outcome: "done" });
    expect([...readAuditEntries(file)].map(({ kind }) => kind)).toEqual(["session", "request", "session"]);
  });

  test("the disk lost what it had taken", async () => {
    const logger = open();
    logger.begin(read("t", "/w/a"));
    const sync = vi.spyOn(AuditFile.prototype, "sync").mockRejectedValueOnce(Object.assign(new Error("lost"), { code: "EIO" }));
    await expect(logger.endTask("t")).rejects.toEqual(refused);
    expect(sync).toHaveBeenCalledTimes(1);
    expect(() => logger.begin(read("t", "/w/b"))).toThrow(refused);
  });

  test.each([
    { name: "a link", plant: symlinkSync },
    { name: "a second name", plant: linkSync },
  ])("the log is $name of another file, which stays as it is", ({ plant }) => {
    const victim = path.join(root, "victim");
    mkdirSync(directory, { recursive: true });
    writeFileSync(victim, "", { mode: 0o644 });
    plant(victim, file);
    expect(() => open()).toThrow(refused);
    const { mode, size } = statSync(victim);
    expect({ mode: mode & 0o777, size }).toEqual({ mode: 0o644, size: 0 });
  });

  test("the log is a link to nowhere, and nothing is made there", () => {
    mkdirSync(directory, { recursive: true });
    symlinkSync(path.join(root, "victim"), file);
    expect(() => open()).toThrow(refused);
    expect(readdirSync(root)).not.toContain("victim");
    rmSync(file);
    expect(() => open()).not.toThrow();
  });

  test.each([
    { name: "the log is a FIFO", plant: () => execFileSync("mkfifo", [file]) },
    { name: "the log is a directory", plant: () => mkdirSync(file) },
    { name: "its directory is a link", plant: () => (renameSync(directory, `${directory}-real`), symlinkSync(`${directory}-real`, directory)) },
    { name: "its directory is another user's", plant: () => execFileSync("chown", ["65534", directory]) },
    { name: "its last line was changed", plant: () => writeFileSync(file, '{"v":1,"seq":1}\n') },
    { name: "it has no line end for long", plant: () => writeFileSync(file, Buffer.alloc(600 * 1024, "x")) },
  ])("$name", ({ plant }) => {
    mkdirSync(directory, { recursive: true });
    plant();
    expect(() => open()).toThrow(refused);
    rmSync(directory, { recursive: true });
    expect(() => open()).not.toThrow();
  });

  test("it is the log of another session", async () => {
    await open("other").close();
    expect(() => open("s")).toThrow(/it is the log of session other/);
  });
});

describe("one writer at a time:", () => {
  test("a second one of this process is refused until the first closed", async () => {
    const first = open();
    expect(() => open()).toThrow(refused);
    first.begin(read("t", "/w/a")).end({ outcome: "done" });
    await first.close();
    await open().close();
    expect(verifyChain(readAuditLines(file))).toMatchObject({ entries: 6, broken: undefined });
  });

  test("another process is refused, and a killed one holds nothing", async () => {
    const holder = spawn(process.execPath, [WRITER, "hold", directory], { stdio: ["pipe", "pipe", "inherit"] });
    const ended = once(holder, "close");
    await once(holder.stdout, "data");
    expect(() => open()).toThrow(/another process, or this one, writes it already/);
    holder.kill("SIGKILL");
    await ended;
    open();
    const said: unknown = JSON.parse(execFileSync(process.execPath, [WRITER, "open", directory], { encoding: "utf8" }));
    expect(said).toMatchObject({ refusal: "audit", said: expect.stringMatching(/writes it already/) });
  });
});

describe("what is written reaches the disk", () => {
  test("at a task's end, together for tasks that end together, and when it is closed", async () => {
    const sync = vi.spyOn(AuditFile.prototype, "sync");
    const logger = open();
    for (const task of ["a", "b", "c"]) logger.begin(read(task, "/w"));
    expect(sync).toHaveBeenCalledTimes(0);
    await Promise.all(["a", "b", "c"].map(async (task) => await logger.endTask(task)));
    expect(sync).toHaveBeenCalledTimes(1);
    await logger.close();
    expect(sync).toHaveBeenCalledTimes(2);
  });

  test("a second after it was written, and not again while nothing is", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    // A real one ends in its own time, which these clocks do not know.
    const sync = vi.spyOn(AuditFile.prototype, "sync").mockResolvedValue();
    const logger = open();
    logger.begin(read("t", "/w/a"));
    await vi.advanceTimersByTimeAsync(999);
    expect(sync).toHaveBeenCalledTimes(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(sync).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(sync).toHaveBeenCalledTimes(1);
    logger.begin(read("t", "/w/b"));
    await vi.advanceTimersByTimeAsync(1000);
    expect(sync).toHaveBeenCalledTimes(2);
  });
});
