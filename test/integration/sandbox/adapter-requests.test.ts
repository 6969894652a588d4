import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { UsageError } from "../../../policy/errors.ts";
import type { SandboxAdapter } from "../../../sandbox/sandbox-adapter.ts";
import type { SandboxOptions } from "../../../sandbox/sandbox.ts";
import { everything, outcomeOf, takeSnapshot } from "./guarded-tree.ts";
import { about, OpenSandbox, SECRET } from "./open-sandbox.ts";

let guard: OpenSandbox;
let files: SandboxAdapter;

beforeEach(() => {
  guard = new OpenSandbox();
  files = guard.sandbox.files;
});
afterEach(async () => await guard.end());

async function reopen(options: Partial<SandboxOptions>): Promise<void> {
  await guard.end();
  guard = new OpenSandbox(options);
  files = guard.sandbox.files;
}

describe("a batch", () => {
  test("tells the strictest decision and all risks, does nothing and asks nobody", () => {
    const before = takeSnapshot(guard.root);
    const batch = files.previewBatch([
      { ...about, path: guard.at("file.txt"), intent: "read" },
      { ...about, path: guard.at("file.txt"), intent: "delete" },
      { ...about, path: guard.at("file.txt"), destinationPath: guard.at("dir/x"), intent: "move" },
    ]);
    expect(batch).toMatchObject({ decision: "confirm", tags: ["delete", "move"], verdicts: [{ decision: "allow" }, { decision: "confirm" }, { decision: "confirm" }] });
    expect([takeSnapshot(guard.root), guard.asked, guard.story()]).toEqual([before, [], []]);
  });

  test("of more than ten is a risk of its own, and one path outside denies all", () => {
    const one = { ...about, path: guard.at("file.txt"), intent: "read" as const };
    expect(files.previewBatch(Array.from({ length: 11 }, () => one))).toMatchObject({ decision: "allow", tags: ["batch"] });
    const mixed = files.previewBatch([one, { ...one, path: "/etc/passwd" }, { ...one, path: guard.at(".env") }, { ...one, path: guard.at("missing") }]);
    expect(mixed.decision).toBe("deny");
    expect(mixed.verdicts.map(({ decision, ruleId }) => [decision, ruleId])).toEqual([["allow", "default"], ["deny", "roots"], ["deny", `grant:${guard.root}`], ["deny", "file:ENOENT"]]);
  });
});

describe("what was deleted", () => {
  test("comes back by its id, once, and is in the log as created", async () => {
    const { trashId = "" } = await files.deleteFile({ ...about, path: guard.at("file.txt"), intent: "delete" });
    expect(existsSync(guard.at("file.txt"))).toBe(false);
    expect(await files.restoreFile({ ...about, trashId })).toMatchObject({ path: guard.at("file.txt"), size: SECRET.length });
    expect(readFileSync(guard.at("file.txt"), "utf8")).toBe(SECRET);
    expect(await outcomeOf(() => files.restoreFile({ ...about, trashId }))).toBe("ENOENT");
    expect(guard.story().slice(-4)).toEqual(["request create allow default", "outcome done", "request create - -", "outcome failed ENOENT"]);
  });

  test("does not come back to a place where nothing may be created", async () => {
    await reopen({ config: { rules: [{ id: "no-new", path: "file.txt", intent: ["create"], action: "deny" }] } });
    const { trashId = "" } = await files.deleteFile({ ...about, path: guard.at("file.txt"), intent: "delete" });
    expect(await outcomeOf(() => files.restoreFile({ ...about, trashId }))).toBe("rule");
    expect(existsSync(guard.at("file.txt"))).toBe(false);
  });
});

describe("a malformed request", () => {
  test.each<[string, () => Promise<unknown>]>([
    ["an intent of another operation", () => files.readFile({ ...about, path: guard.at("file.txt"), intent: "delete" })],
    ["a rename into another directory", () => files.moveFile({ ...about, path: guard.at("file.txt"), destinationPath: guard.at("dir/x"), intent: "rename" })],
    ["a session whose name is a path", () => files.readFile({ ...about, sessionId: "../s1", path: guard.at("file.txt"), intent: "read" })],
    ["an empty path", () => files.readFile({ ...about, path: "", intent: "read" })],
    // @ts-expect-error a program without types
    ["no content", () => files.writeFile({ ...about, path: guard.at("new"), intent: "write" })],
    // @ts-expect-error a program without types
    ["a member that is none", () => files.readFile({ ...about, path: guard.at("file.txt"), intent: "read", force: true })],
  ])("with %s is the caller's mistake, and nothing happens", async (_name, operate) => {
    const before = takeSnapshot(guard.root);
    await expect(operate()).rejects.toBeInstanceOf(UsageError);
    expect(takeSnapshot(guard.root)).toBe(before);
  });

  test("another session than the guard's is refused", async () => {
    expect(await outcomeOf(() => files.readFile({ ...about, sessionId: "s2", path: guard.at("file.txt"), intent: "read" }))).toBe("no-session");
  });
});

describe("the guard's own directory", () => {
  test.each([".agentbox", ".agentbox/guard", "."])("is no root, and neither is what holds it (%s)", async (place) => {
    expect(await outcomeOf(() => guard.sandbox.grant({ root: join(guard.place, place), access: everything }))).toBe("not-granted");
    mkdirSync(join(guard.place, "beside"));
    expect(await outcomeOf(() => guard.sandbox.grant({ root: join(guard.place, "beside"), access: everything }))).toBe("done");
  });
});
