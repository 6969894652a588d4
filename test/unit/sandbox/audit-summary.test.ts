import { describe, expect, test } from "vitest";
import type { AuditRecord } from "../../../sandbox/audit-entry.ts";
import { summarizeTasks, type TaskSummary, taskSummarySchema } from "../../../sandbox/task-summary.ts";

type Fields = Partial<AuditRecord> & Pick<AuditRecord, "kind">;

function number(fields: readonly Fields[]): AuditRecord[] {
  return fields.map((own, index) => ({ v: 1, seq: index + 1, time: `2026-11-22T04:00:${String(index % 60).padStart(2, "0")}.000Z`, session: "s", ...own }));
}

function request(intent: AuditRecord["intent"], path: string, more: Partial<AuditRecord> = {}): Fields {
  return { kind: "request", task: "t", intent, path, decision: "allow", ruleId: "r", tags: [], ...more };
}
const outcome = (of: number, more: Partial<AuditRecord>): Fields => ({ kind: "outcome", task: "t", of, ...more });
const ended: Fields = { kind: "task", task: "t", event: "ended" };

function only(fields: readonly Fields[]): TaskSummary {
  const summaries = summarizeTasks(number(fields));
  expect(summaries).toHaveLength(1);
  return taskSummarySchema.parse(summaries[0]);
}

describe("the summary of a task", () => {
  test.each([
    { name: "a file that was read", intent: "read", done: { size: 5 }, expected: { read: ["/a"], bytesRead: 5, bytesWritten: 0, counts: { read: 1 } } },
    { name: "a file that was overwritten", intent: "write", done: { size: 6 }, expected: { written: ["/a"], bytesRead: 0, bytesWritten: 6, counts: { written: 1 } } },
    { name: "a file that was made", intent: "create", done: { size: 7 }, expected: { created: ["/a"], bytesWritten: 7, counts: { created: 1 } } },
    { name: "a file that was deleted", intent: "delete", done: {}, expected: { deleted: ["/a"], bytesWritten: 0 } },
    { name: "a directory that was listed", intent: "list", done: {}, expected: { listed: ["/a"], read: [] } },
  ] as const)("has $name", ({ intent, done, expected }) => {
    expect(only([request(intent, "/a"), outcome(1, { outcome: "done", ...done })])).toMatchObject(expected);
  });

  test.each(["move", "rename"] as const)("has both names of a file after a %s", (intent) => {
    expect(only([request(intent, "/a", { destination: "/b" }), outcome(1, { outcome: "done" })])).toMatchObject({ moved: [{ from: "/a", to: "/b" }] });
  });

  test("has what was asked, and what was refused with its reason and rule", () => {
    const summary = only([
      request("delete", "/a", { decision: "confirm", ruleId: "invariant-delete", tags: ["delete"] }),
      { kind: "confirmation", task: "t", of: 1, path: "/a", prompt: "delete /a?", answer: "denied", by: "terminal" },
      outcome(1, { outcome: "refused", refusal: "declined" }),
      request("read", "/etc/shadow", { decision: undefined, ruleId: undefined, tags: undefined }),
      outcome(4, { outcome: "refused", refusal: "outside-roots", ruleId: "roots" }),
    ]);
    expect(summary).toMatchObject({
      asked: [{ path: "/a", answer: "denied" }],
      refused: [{ path: "/a", reason: "declined", ruleId: "invariant-delete" }, { path: "/etc/shadow", reason: "outside-roots", ruleId: "roots" }],
      deleted: [],
      tags: ["delete"],
      counts: { asked: 1, refused: 2, deleted: 0 },
    });
  });

  test("calls unknown what has no outcome, and failed what the disk refused", () => {
    const summary = only([request("write", "/a"), request("read", "/b"), outcome(2, { outcome: "failed", code: "ENOENT" }), request("read", "/c"), outcome(4, { outcome: "unknown" })]);
    expect(summary).toMatchObject({ unknown: [{ path: "/c", intent: "read" }, { path: "/a", intent: "write" }], failed: [{ path: "/b", intent: "read", code: "ENOENT" }], read: [], written: [], counts: { unknown: 2, failed: 1 }, ended: null });
  });

  test("has the risk tags of all its requests, each once and in one order", () => {
    const summary = only([request("write", "/a", { tags: ["large", "overwrite"] }), outcome(1, { outcome: "done" }), request("delete", "/b", { tags: ["delete", "large"] })]);
    expect(summary.tags).toEqual(["delete", "overwrite", "large"]);
  });

  test("names a file once however often it was read, and counts every time", () => {
    expect(only([request("read", "/a"), outcome(1, { outcome: "done", size: 1 }), request("read", "/a"), outcome(3, { outcome: "done", size: 2 })])).toMatchObject({ read: ["/a"], bytesRead: 3, counts: { read: 2 }, leftOut: 0 });
  });

  test("lists 200 of each kind and counts what it leaves out", () => {
    const many = Array.from({ length: 230 }, (_, index) => [request("read", `/f${index}`), outcome(2 * index + 1, { outcome: "done", size: 1 })]).flat();
    const open = Array.from({ length: 205 }, (_, index) => request("write", `/w${index}`));
    const summary = only([...many, ...open]);
    expect(summary.read).toHaveLength(200);
    expect(summary.unknown).toHaveLength(200);
    expect(summary).toMatchObject({ counts: { read: 230, unknown: 205 }, bytesRead: 230, leftOut: 35 });
  });

  test("is one for each task, and another for an id that comes again after its end or in another process", () => {
    const summaries = summarizeTasks(number([
      { kind: "session", event: "opened" },
      request("read", "/a"), { ...request("read", "/b"), task: "u" }, outcome(2, { outcome: "done" }), ended,
      request("read", "/c"), { kind: "session", event: "resumed" }, request("read", "/d"), outcome(8, { outcome: "done" }),
      // Of a request of the process before: it is not counted as one of this.
      outcome(6, { outcome: "done" }),
    ]));
    expect(summaries.map(({ taskId, read, unknown, ended: end }) => ({ taskId, read, unknown: unknown.map(({ path }) => path), over: end !== null }))).toEqual([
      { taskId: "t", read: ["/a"], unknown: [], over: true },
      { taskId: "u", read: [], unknown: ["/b"], over: false },
      { taskId: "t", read: [], unknown: ["/c"], over: false },
      { taskId: "t", read: ["/d"], unknown: [], over: false },
    ]);
  });
});
