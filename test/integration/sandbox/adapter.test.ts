import { renameSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SandboxAdapter } from "../../../sandbox/sandbox-adapter.ts";
import type { SandboxOptions } from "../../../sandbox/sandbox.ts";
import { outcomeOf, takeSnapshot } from "./guarded-tree.ts";
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

type Row = { name: string; operate: () => Promise<unknown>; intent: string; invariant?: string };

const rows: readonly Row[] = [
  { name: "readFile", intent: "read", operate: () => files.readFile({ ...about, path: guard.at("file.txt"), intent: "read" }) },
  { name: "writeFile of a new file", intent: "create", operate: () => files.writeFile({ ...about, path: guard.at("new.txt"), intent: "create", content: SECRET }) },
  { name: "writeFile over a file", intent: "write", invariant: "overwrite", operate: () => files.writeFile({ ...about, path: guard.at("file.txt"), intent: "write", content: `${SECRET}!` }) },
  { name: "createDirectory", intent: "create", operate: () => files.createDirectory({ ...about, path: guard.at("made"), intent: "create" }) },
  { name: "deleteFile", intent: "delete", invariant: "delete", operate: () => files.deleteFile({ ...about, path: guard.at("file.txt"), intent: "delete" }) },
  { name: "moveFile to another directory", intent: "move", invariant: "move", operate: () => files.moveFile({ ...about, path: guard.at("file.txt"), destinationPath: guard.at("dir/file.txt"), intent: "move" }) },
  { name: "moveFile to another name", intent: "rename", invariant: "rename", operate: () => files.moveFile({ ...about, path: guard.at("file.txt"), destinationPath: guard.at("other.txt"), intent: "rename" }) },
  { name: "listFiles", intent: "list", operate: () => files.listFiles({ ...about, path: guard.root, intent: "list" }) },
];
const asking = rows.filter(({ invariant }) => invariant !== undefined);

describe("every operation", () => {
  test.each(rows)("$name is done where it is allowed, or a human says yes, and the log has all of it", async ({ operate, intent, invariant }) => {
    await operate();
    const request = invariant === undefined ? [`request ${intent} allow default`] : [`request ${intent} confirm invariant:${invariant}`, "confirmation approved"];
    expect(guard.story()).toEqual([...request, "outcome done"]);
    expect(guard.asked).toHaveLength(invariant === undefined ? 0 : 1);
  });

  test.each(rows)("$name is refused by a rule, whatever a human would say, and changes nothing", async ({ operate, intent }) => {
    await reopen({ config: { rules: [{ id: "never", action: "deny" }] } });
    const before = takeSnapshot(guard.root);
    expect(await outcomeOf(operate)).toBe("rule");
    expect(guard.story()).toEqual([`request ${intent} deny never`, "outcome refused rule"]);
    expect(guard.asked).toEqual([]);
    expect(takeSnapshot(guard.root)).toBe(before);
  });

  test.each(asking)("$name is not done after a no", async ({ operate, intent, invariant }) => {
    guard.answer = "deny";
    const before = takeSnapshot(guard.root);
    expect(await outcomeOf(operate)).toBe("declined");
    expect(guard.story()).toEqual([`request ${intent} confirm invariant:${invariant}`, "confirmation denied", "outcome refused declined"]);
    expect(takeSnapshot(guard.root)).toBe(before);
  });

  test.each(asking)("$name is not done when nobody answers in time", async ({ operate, intent, invariant }) => {
    await reopen({ config: { timeout: 0.02 } });
    guard.answer = async () => await new Promise(() => undefined);
    const before = takeSnapshot(guard.root);
    expect(await outcomeOf(operate)).toBe("unanswered");
    expect(guard.story()).toEqual([`request ${intent} confirm invariant:${invariant}`, "confirmation timed-out", "outcome refused unanswered"]);
    expect(takeSnapshot(guard.root)).toBe(before);
  });

  test.each(asking)("$name is not done when there is nobody to ask", async ({ operate }) => {
    await reopen({ frontEnds: [] });
    const before = takeSnapshot(guard.root);
    expect(await outcomeOf(operate)).toBe("unanswered");
    expect(guard.story().slice(1)).toEqual(["confirmation unavailable", "outcome refused unanswered"]);
    expect(takeSnapshot(guard.root)).toBe(before);
  });

  test.each(rows)("$name is not done when the log cannot be written, and is done again under a new one", async ({ operate }) => {
    const aside = `${guard.log}.aside`;
    renameSync(guard.log, aside);
    const before = takeSnapshot(guard.root);
    expect(await outcomeOf(operate)).toBe("audit");
    expect(guard.asked).toEqual([]);
    expect(takeSnapshot(guard.root)).toBe(before);
    renameSync(aside, guard.log);
    expect(await outcomeOf(operate)).toBe("done");
  });

  test.each(rows)("$name outside of the roots is refused and written down without a decision", async ({ operate, intent }) => {
    for (const grant of guard.sandbox.listGrants()) guard.sandbox.revoke(grant);
    expect(await outcomeOf(operate)).toBe("not-granted");
    expect(guard.story()).toEqual([`request ${intent} - -`, "outcome refused not-granted"]);
  });
});
