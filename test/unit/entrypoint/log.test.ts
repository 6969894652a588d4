import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { writeJsonLines, writePlainLines } from "../../../entrypoint/log.ts";

let directory: string;
let fd: number;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "agentbox-log-"));
  fd = openSync(join(directory, "log"), "w");
});
afterEach(() => {
  closeSync(fd);
  rmSync(directory, { recursive: true });
});

const read = (): string => readFileSync(join(directory, "log"), "utf8");

test.each([
  ["plain", writePlainLines],
  ["JSON", writeJsonLines],
])("%s lines hold nothing that a terminal would obey", (_name, makeLog) => {
  makeLog(fd)({ event: "failed", step: "mounts", text: "/p/\u{9b}2J\u{202e}gnp", exitCode: 70 });
  expect(read()).toContain(String.raw`/p/\u009b2J\u202egnp`);
  expect(read()).not.toMatch(/[\u{80}-\u{9f}\u{202e}]/u);
});

test("a failure of several lines keeps them", () => {
  writePlainLines(fd)({ event: "failed", step: "mounts", text: "one\ntwo", exitCode: 70 });
  expect(read()).toBe("agentbox: error: mounts: one\ntwo\n");
});
