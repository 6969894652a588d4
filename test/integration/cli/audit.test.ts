import { appendFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { auditSummarySchema } from "../../../cli/commands/audit.ts";
import { auditEntrySchema } from "../../../sandbox/audit-entry.ts";
import { AuditLogger } from "../../../sandbox/audit-logger.ts";
import { FakeEngine } from "./fake-engine.ts";

let engine: FakeEngine;
beforeEach(() => {
  engine = new FakeEngine();
});
afterEach(() => engine.remove());

const directoryOf = (session: string): string => path.join(engine.home, ".agentbox/guard", session);
const fileOf = (session: string): string => path.join(directoryOf(session), "audit.jsonl");

/** Records a session that read a file, asked about another, and was refused a third. */
async function record(session: string, close = true): Promise<string> {
  const logger = new AuditLogger({ directory: directoryOf(session), session });
  logger.begin({ taskId: "t1", path: "/w/a\n2026 forged\u202e", intent: "read" }, { decision: "allow", ruleId: "r1", tags: [] }).end({ outcome: "done", size: 2000 });
  const deletion = logger.begin({ taskId: "t1", path: "/w/b", intent: "delete" }, { decision: "confirm", ruleId: "delete", tags: ["delete"] });
  deletion.confirm({ prompt: "delete /w/b?", answer: "denied", scope: "once", by: "terminal" });
  deletion.end({ outcome: "refused", refusal: "declined" });
  logger.begin({ taskId: "t2", path: "/etc/shadow", intent: "write" }).end({ outcome: "refused", refusal: "outside-roots", ruleId: "roots" });
  await logger.endTask("t1");
  if (close) await logger.close();
  return logger.head;
}

describe("audit show", () => {
  test("shows every entry as one line that no path can forge, and the head", async () => {
    const head = await record("s1");
    const { code, stdout, stderr } = await engine.run(["audit", "show"]);
    expect(stdout.split("\n").map((line) => line.replace(/^\S+ +/, "").replaceAll(/  +/g, " "))).toEqual([
      "1 - session opened",
      String.raw`2 t1 request read "/w/a\n2026 forged\u202e" allow by r1`,
      String.raw`3 t1 outcome read "/w/a\n2026 forged\u202e" done 2000 bytes of 2`,
      '4 t1 request delete "/w/b" confirm by delete delete',
      '5 t1 asked delete "/w/b" "delete /w/b?" denied by terminal of 4',
      '6 t1 outcome delete "/w/b" refused declined of 4',
      '7 t2 request write "/etc/shadow" undecided',
      '8 t2 outcome write "/etc/shadow" refused outside-roots by roots of 7',
      "9 t1 task ended 1 read, 1 asked, 1 refused",
      "10 - session closed",
      "",
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: `agentbox: session s1\nagentbox: entry 10, head ${head}\n` });
  });

  test("shows one task, for programs by the schema of the log", async () => {
    await record("s1");
    const { stdout } = await engine.run(["audit", "show", "s1", "--task", "t2", "--json"]);
    const entries = stdout.trimEnd().split("\n").map((line) => auditEntrySchema.parse(JSON.parse(line)));
    expect(entries.map(({ seq, task }) => [seq, task])).toEqual([[7, "t2"], [8, "t2"]]);
  });

  test("takes the session that was written last, and another by the beginning of its id", async () => {
    await record("older");
    await record("newer");
    utimesSync(fileOf("older"), 1, 1);
    expect((await engine.run(["audit", "show"])).stderr).toMatch(/session newer\n/);
    expect((await engine.run(["audit", "show", "old"])).stderr).toMatch(/session older\n/);
  });

  test("follows a session until it ends", async () => {
    const logger = new AuditLogger({ directory: directoryOf("s1"), session: "s1" });
    const { child, outcome } = engine.start(["audit", "show", "--follow"]);
    let seen = "";
    child.stdout?.on("data", (chunk: Buffer) => (seen += chunk.toString()));
    const awaitText = async (text: string): Promise<void> => {
      while (!seen.includes(text)) await sleep(10);
    };
    await awaitText("opened");
    const operation = logger.begin({ taskId: "t1", path: "/w/later", intent: "read" });
    await awaitText("/w/later");
    operation.end({ outcome: "failed", code: "ENOENT" });
    await logger.close();
    expect(await outcome).toMatchObject({ code: 0, stdout: expect.stringMatching(/opened\n.*request.*\n.*failed  ENOENT.*\n.*closed\n$/) });
  });

  test("stops following a log that was removed", async () => {
    await record("s1", false);
    const { child, outcome } = engine.start(["audit", "show", "--follow"]);
    await new Promise((resolve) => child.stdout?.once("data", resolve));
    rmSync(directoryOf("s1"), { recursive: true });
    expect(await outcome).toMatchObject({ code: 0, stderr: expect.stringMatching(/was removed or replaced/) });
  });
});

describe("audit verify", () => {
  test("says that a log holds, and against a head that was noted", async () => {
    const head = await record("s1");
    expect(await engine.run(["audit", "verify"])).toMatchObject({ code: 0, stdout: expect.stringMatching(new RegExp(`^the chain holds up to entry 10, .* head ${head}\n$`)), stderr: expect.stringMatching(/note the head elsewhere/) });
    expect(await engine.run(["audit", "verify", "s1", "--head", head.toUpperCase()])).toMatchObject({ code: 0, stderr: "agentbox: session s1\n" });
    expect(await engine.run(["audit", "verify", path.relative(engine.project, fileOf("s1"))])).toMatchObject({ code: 0 });
  });

  test.each([
    { name: "a line that was changed", edit: (text: string) => text.replace("/w/b", "/w/c"), said: /^line 4: changed: .*; the chain holds up to entry 3, / },
    { name: "a line that was removed", edit: (text: string) => text.replace(/^.*"seq":7,.*\n/m, ""), said: /^line 7: removed: entry 7 is missing; / },
    { name: "a line that was torn", edit: (text: string) => text.slice(0, -5), said: /^line 10: torn: / },
    { name: "a log that is empty", edit: () => "", said: /^line 1: cut-off: .*no entry holds/ },
  ])("ends with 1 for $name", async ({ edit, said }) => {
    await record("s1");
    writeFileSync(fileOf("s1"), edit(readFileSync(fileOf("s1"), "utf8")));
    expect(await engine.run(["audit", "verify"])).toMatchObject({ code: 1, stdout: expect.stringMatching(said) });
    expect((await engine.run(["audit", "show"])).stderr).toMatch(/not proven from some line on: line /);
  });

  test("finds lines that were cut off the end by the head alone", async () => {
    const head = await record("s1");
    writeFileSync(fileOf("s1"), readFileSync(fileOf("s1"), "utf8").split("\n").slice(0, 8).join("\n").concat("\n"));
    expect(await engine.run(["audit", "verify"])).toMatchObject({ code: 0, stderr: expect.stringMatching(/the end was cut off/) });
    expect(await engine.run(["audit", "verify", "--head", head])).toMatchObject({ code: 1, stdout: expect.stringMatching(/^line 9: cut-off: /) });
  });

  test.each([
    { name: "a session that is none", argv: ["nobody"], said: /no audit log of a session "nobody" is recorded/ },
    { name: "an id that several have", argv: ["s"], said: /more than one audit log of a session "s"/ },
    { name: "a file that is not there", argv: ["./none.jsonl"], said: /none\.jsonl" cannot be read \(ENOENT\)/ },
    { name: "a link", argv: ["./link.jsonl"], said: /link\.jsonl" cannot be read \(ELOOP\)/ },
    { name: "a directory", argv: ["./"], said: /cannot be read \(/ },
    { name: "a head that is none", argv: ["s1", "--head", "abc"], said: /--head "abc" is no head of an audit log; expected 64 hexadecimal digits/ },
    { name: "two sessions", argv: ["s1", "s2"], said: /"s2" is one word too many/ },
  ])("refuses $name", async ({ argv, said }) => {
    await record("s1");
    await record("s2");
    symlinkSync(fileOf("s1"), path.join(engine.project, "link.jsonl"));
    expect(await engine.run(["audit", "verify", ...argv])).toMatchObject({ code: 64, stdout: "", stderr: expect.stringMatching(said) });
  });

  test("has nothing to verify where nothing is recorded", async () => {
    expect(await engine.run(["audit", "verify"])).toMatchObject({ code: 64, stderr: expect.stringMatching(/no session of the file guard is recorded/) });
    expect(await engine.run(["audit", "show"])).toMatchObject({ code: 0, stdout: "", stderr: expect.stringMatching(/no session of the file guard is recorded/) });
  });
});

const ask = async (...argv: string[]) => auditSummarySchema.parse(JSON.parse((await engine.run(["audit", "summary", "--json", ...argv])).stdout));

describe("audit summary", () => {
  test("tells what each task did", async () => {
    await record("s1");
    const { code, stdout } = await engine.run(["audit", "summary"]);
    expect(stdout).toMatch(/^task t1, \S+ to \S+\n {2}read 1, 2\.0 kB\n {4}"\/w\/a\\n2026 forged\\u202e"\n {2}asked 1\n {4}"\/w\/b": denied\n {2}refused 1\n {4}"\/w\/b": declined by delete\n {2}risks delete\n\ntask t2, \S+ to no end that is known\n {2}refused 1\n {4}"\/etc\/shadow": outside-roots by roots\n$/);
    expect(code).toBe(0);
  });

  test("tells it to programs, one task or all, and whether it is proven", async () => {
    const head = await record("s1");
    expect(await ask("s1")).toMatchObject({ session: "s1", head, broken: null, tasks: [{ taskId: "t1" }, { taskId: "t2" }] });
    expect((await ask("--task", "t2")).tasks).toMatchObject([{ taskId: "t2", counts: { refused: 1 } }]);
    appendFileSync(fileOf("s1"), "x\n");
    expect(await ask()).toMatchObject({ broken: { line: 11, kind: "changed" } });
  });

  test("is empty where nothing is recorded, also beside directories without a log", async () => {
    mkdirSync(directoryOf("empty"), { recursive: true });
    const { stdout } = await engine.run(["audit", "summary", "--json"]);
    expect(auditSummarySchema.parse(JSON.parse(stdout))).toEqual({ version: 1, session: null, head: null, broken: null, tasks: [] });
  });
});

test("audit needs a word, and has a help", async () => {
  expect(await engine.run(["audit"])).toMatchObject({ code: 64, stderr: expect.stringMatching(/audit needs a word.*show, verify, summary/) });
  expect((await engine.run(["audit", "verify", "--help"])).stdout).toMatch(/agentbox audit verify \[SESSION\|FILE\] \[--head HASH\][^]*--head HASH/);
  expect(await engine.run(["audit", "verify", "--task", "t"])).toMatchObject({ code: 64, stderr: expect.stringMatching(/--task has no meaning for audit verify/) });
});
