import { appendFileSync, existsSync, mkdtempSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { makeCallback, type Scope } from "../../../sandbox/confirmation.ts";
import { readAuditEntries } from "../../../sandbox/audit-reader.ts";
import { Sandbox } from "../../../sandbox/sandbox.ts";
import { everything } from "./guarded-tree.ts";

// A human says yes to what a file was when the question came: what takes its name while they think is another question.

let top: string;
let root: string;
let file: string;
beforeEach(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), "agentbox-held-")));
  root = realpathSync(mkdtempSync(join(top, "root-")));
  file = join(root, "kept.txt");
  writeFileSync(file, "as it was");
  writeFileSync(join(root, "other.txt"), "the user's own");
});
afterEach(() => rmSync(top, { recursive: true }));

/** A guard whose human does something before the answer. */
function makeSandbox(scope: Scope, meanwhile: () => void): Sandbox {
  const sandbox = new Sandbox({ sessionId: "s1", agentboxHome: join(top, "home"), frontEnds: [makeCallback(async () => (meanwhile(), scope))] });
  sandbox.grant({ root, access: everything });
  return sandbox;
}

const about = { sessionId: "s1", taskId: "t1" };
const lastRefusal = () => [...readAuditEntries(join(top, "home/guard/s1/audit.jsonl"))].findLast(({ kind }) => kind === "outcome")?.refusal;

const exchange = () => renameSync(join(root, "other.txt"), file);
const grow = () => appendFileSync(file, ", and more");

describe("a yes to one operation", () => {
  test.each([
    ["another file that took its name", exchange, "the user's own"],
    ["contents that came meanwhile", grow, "as it was, and more"],
  ])("does not hold for %s", async (_case, meanwhile, kept) => {
    const sandbox = makeSandbox("once", meanwhile);
    await expect(sandbox.files.writeFile({ ...about, path: file, intent: "write", content: "new" })).rejects.toThrow(/exchanged after it had been judged/);
    expect(lastRefusal()).toBe("link");
    expect(readFileSync(file, "utf8")).toBe(kept);
    await sandbox.close();
  });

  test.each([
    ["delete", (sandbox: Sandbox) => sandbox.files.deleteFile({ ...about, path: file, intent: "delete" })],
    ["move onto it", (sandbox: Sandbox) => sandbox.files.moveFile({ ...about, path: join(root, "from.txt"), destinationPath: file, intent: "move" })],
  ])("to %s does not hold for contents that came meanwhile", async (_case, operate) => {
    writeFileSync(join(root, "from.txt"), "moved");
    const sandbox = makeSandbox("once", grow);
    await expect(operate(sandbox)).rejects.toThrow(/exchanged after it had been judged/);
    expect(readFileSync(file, "utf8")).toBe("as it was, and more");
    await sandbox.close();
  });

  test("holds for what it was given for", async () => {
    const sandbox = makeSandbox("once", () => undefined);
    await sandbox.files.writeFile({ ...about, path: file, intent: "write", content: "new" });
    expect(readFileSync(file, "utf8")).toBe("new");
    await sandbox.files.deleteFile({ ...about, path: file, intent: "delete" });
    expect(existsSync(file)).toBe(false);
    await sandbox.close();
  });
});

test("a yes for the session is one for whatever stands there, by whoever comes last", async () => {
  const sandbox = makeSandbox("session", exchange);
  await sandbox.files.writeFile({ ...about, path: file, intent: "write", content: "first" });
  await Promise.all(["a", "b", "c"].map((content) => sandbox.files.writeFile({ ...about, path: file, intent: "write", content })));
  expect(["a", "b", "c"]).toContain(readFileSync(file, "utf8"));
  await sandbox.close();
});
