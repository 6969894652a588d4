import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SandboxAdapter } from "../../../sandbox/sandbox-adapter.ts";
import { outcomeOf } from "./guarded-tree.ts";
import { about, OpenSandbox, SECRET } from "./open-sandbox.ts";

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

let guard: OpenSandbox;
let files: SandboxAdapter;

beforeEach(() => {
  guard = new OpenSandbox();
  files = guard.sandbox.files;
});
afterEach(async () => await guard.end());

const remove = async () => await files.deleteFile({ ...about, path: guard.at("file.txt"), intent: "delete" });

describe("the log", () => {
  test("has a request before its operation happens", async () => {
    let seen: string[] = [];
    const content = (async function* () {
      seen = guard.story();
      yield Buffer.from(SECRET);
    })();
    await files.writeFile({ ...about, path: guard.at("new.txt"), intent: "create", content, sizeHint: 100 });
    expect(seen).toEqual(["request create allow default"]);
  });

  test("has size and digest of what was read and written, and never the contents", async () => {
    await files.readFile({ ...about, path: guard.at("file.txt"), intent: "read" });
    await files.writeFile({ ...about, path: guard.at("new.txt"), intent: "create", content: SECRET });
    const outcomes = guard.entries().filter(({ kind }) => kind === "outcome");
    expect(outcomes).toMatchObject([{ size: SECRET.length, digest: sha256(SECRET) }, { size: SECRET.length, digest: sha256(SECRET) }]);
  });

  test("has the question as the human saw it, the answer, for how long it holds and who gave it", async () => {
    guard.answer = "session";
    await files.deleteFile({ ...about, path: guard.at("file.txt"), intent: "delete" });
    const [confirmation] = guard.entries().filter(({ kind }) => kind === "confirmation");
    expect(confirmation).toMatchObject({ answer: "approved", scope: "session", by: "callback" });
    expect(confirmation?.prompt).toBe(`delete ${JSON.stringify(guard.at("file.txt"))} (${SECRET.length} bytes): what is deleted is gone [invariant:delete]`);
  });

  test("has what the disk refused, with the kernel's word", async () => {
    expect(await outcomeOf(() => files.readFile({ ...about, path: guard.at("missing"), intent: "read" }))).toBe("ENOENT");
    expect(guard.story()).toEqual(["request read - -", "outcome failed ENOENT"]);
  });

  test("sums up a task: what was read, written, deleted, asked and refused", async () => {
    await files.readFile({ ...about, path: guard.at("file.txt"), intent: "read" });
    await files.deleteFile({ ...about, path: guard.at("file.txt"), intent: "delete" });
    await outcomeOf(() => files.readFile({ ...about, path: "/etc/passwd", intent: "read" }));
    expect(await guard.sandbox.endTask("t1")).toMatchObject({
      taskId: "t1", read: [guard.at("file.txt")], deleted: [guard.at("file.txt")], asked: [{ path: guard.at("file.txt"), answer: "approved" }],
      refused: [{ path: "/etc/passwd", reason: "outside-roots" }], bytesRead: SECRET.length, tags: ["delete"],
    });
  });

  test("loses no entry of a hundred tasks at once", async () => {
    await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        const task = { ...about, taskId: `task-${index}`, path: guard.at(`task-${index}`) };
        await files.writeFile({ ...task, intent: "create", content: "one" });
        await files.readFile({ ...task, intent: "read" });
        expect(await guard.sandbox.endTask(task.taskId)).toMatchObject({ counts: { created: 1, read: 1, unknown: 0 } });
      }),
    );
    expect(guard.story().filter((line) => line.startsWith("request"))).toHaveLength(200);
    expect(guard.story().filter((line) => line === "outcome done")).toHaveLength(200);
    expect(guard.entries().map(({ seq }) => seq)).toEqual(guard.entries().map((_, index) => index + 1));
  });
});

describe("while a human thinks", () => {
  test("the grant is taken back: nothing is done", async () => {
    guard.answer = () => {
      for (const grant of guard.sandbox.listGrants()) guard.sandbox.revoke(grant);
      return "once";
    };
    expect(await outcomeOf(remove)).toBe("not-granted");
    expect(existsSync(guard.at("file.txt"))).toBe(true);
  });

  test.each([
    ["another file", () => writeFileSync(guard.at("file.txt"), "other")],
    ["a link out of the root", () => symlinkSync("/etc/passwd", guard.at("file.txt"))],
  ])("the file is exchanged for %s: that is neither deleted nor moved", async (_name, put) => {
    guard.answer = () => {
      renameSync(guard.at("file.txt"), guard.at("kept.txt"));
      put();
      return "once";
    };
    expect(await outcomeOf(remove)).toBe("link");
    unlinkSync(guard.at("file.txt"));
    renameSync(guard.at("kept.txt"), guard.at("file.txt"));
    expect(await outcomeOf(() => files.moveFile({ ...about, path: guard.at("file.txt"), destinationPath: guard.at("dir/x"), intent: "move" }))).toBe("link");
    expect(readFileSync(guard.at("kept.txt"), "utf8")).toBe(SECRET);
    expect(existsSync(guard.at("dir/x"))).toBe(false);
  });

  test("the directory is exchanged: nothing is written there or elsewhere", async () => {
    writeFileSync(guard.at("dir/file.txt"), "old");
    guard.answer = () => {
      renameSync(guard.at("dir"), join(guard.place, "away"));
      mkdirSync(guard.at("dir"));
      return "once";
    };
    expect(await outcomeOf(() => files.writeFile({ ...about, path: guard.at("dir/file.txt"), intent: "write", content: "new" }))).toBe("link");
    expect(readFileSync(join(guard.place, "away/file.txt"), "utf8")).toBe("old");
    expect(existsSync(guard.at("dir/file.txt"))).toBe(false);
  });

  test("the session ends: it is a no, and the log says so before its last line", async () => {
    guard.answer = async () => await new Promise(() => undefined);
    const deletion = outcomeOf(remove);
    await guard.sandbox.close();
    expect(await deletion).toBe("declined");
    expect(existsSync(guard.at("file.txt"))).toBe(true);
    expect(guard.story()).toEqual(["request delete confirm invariant:delete", "confirmation denied", "outcome refused declined"]);
    expect(guard.verify()).toMatchObject({ closed: true });
    expect(await outcomeOf(remove)).toBe("no-session");
  });
});

test("what is being done when the session ends is awaited, and the log tells how it ended before its last line", async () => {
  const begun = Promise.withResolvers<void>();
  const rest = Promise.withResolvers<void>();
  const content = (async function* () {
    yield Buffer.from("half");
    begun.resolve();
    await rest.promise;
  })();
  const writing = outcomeOf(() => files.writeFile({ ...about, path: guard.at("new.txt"), intent: "create", content, sizeHint: 4 }));
  await begun.promise;
  const closing = guard.sandbox.close();
  await setTimeout(50);
  rest.resolve();
  await closing;
  expect(await writing).toBe("not-granted");
  expect(existsSync(guard.at("new.txt"))).toBe(false);
  expect(guard.story()).toEqual(["request create allow default", "outcome refused not-granted"]);
  expect(guard.verify()).toMatchObject({ closed: true });
});
