import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { verifyChain } from "../../../sandbox/audit-chain.ts";
import { AuditLogger } from "../../../sandbox/audit-logger.ts";
import { readAuditEntries, readAuditLines } from "../../../sandbox/audit-reader.ts";

/** Where there is one, a file system that need not wait for a disk: a thousand logs are opened here. */
const MEMORY = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

let root: string;
let directory: string;
let file: string;
beforeEach(() => {
  root = mkdtempSync(path.join(MEMORY, "agentbox-audit-"));
  directory = path.join(root, "guard");
  file = path.join(directory, "audit.jsonl");
});
afterEach(() => rmSync(root, { recursive: true }));

async function makeLog(): Promise<Buffer> {
  const logger = new AuditLogger({ directory, session: "s" });
  logger.begin({ taskId: "t", path: "/w/ä\u2028", intent: "read" }, { decision: "allow", ruleId: "r", tags: [] }).end({ outcome: "done" });
  await logger.close();
  return readFileSync(file);
}

test("a log that ends at any byte goes on behind its last whole line, and keeps the rest beside it", async () => {
  const whole = await makeLog();
  const ends = [...whole.entries()].flatMap(([index, byte]) => (byte === 0x0a ? [index + 1] : []));
  expect(ends).toHaveLength(4);
  for (let length = 0; length <= whole.length; length += 1) {
    rmSync(directory, { recursive: true });
    mkdirSync(directory);
    writeFileSync(file, whole.subarray(0, length));
    await new AuditLogger({ directory, session: "s" }).close();
    const begin = ends.findLast((end) => end <= length) ?? 0;
    const before = ends.filter((end) => end <= length).length;
    const aside = path.join(directory, "audit.torn-1");
    const entries = [...readAuditEntries(file)];
    expect({ length, count: entries.length, torn: entries[before]?.torn?.bytes ?? 0, event: entries[before]?.event, broken: verifyChain(readAuditLines(file)).broken, kept: existsSync(aside) ? readFileSync(aside).toString("hex") : "" }).toEqual({
      length, count: before + 2, torn: length - begin, event: before === 0 ? "opened" : "resumed", broken: undefined, kept: whole.subarray(begin, length).toString("hex"),
    });
  }
});

test("what several killed processes tore is kept in files of its own", async () => {
  await makeLog();
  for (const name of ["audit.torn-1", "audit.torn-2"]) {
    writeFileSync(file, name, { flag: "a" });
    await new AuditLogger({ directory, session: "s" }).close();
    expect(readFileSync(path.join(directory, name), "utf8")).toBe(name);
  }
  expect(verifyChain(readAuditLines(file))).toMatchObject({ torn: 24, broken: undefined });
});
