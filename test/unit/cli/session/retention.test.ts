import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { expireSessions } from "../../../../cli/session/retention.ts";
import { readSessions } from "../../../../cli/session/session-record.ts";

const day = 24 * 3_600_000;
const now = Date.parse("2026-08-31T12:00:00.000Z");
let home: string;

beforeEach(() => {
  home = mkdtempSync(path.join(tmpdir(), "agentbox sessions "));
});

afterEach(() => rmSync(home, { recursive: true, force: true }));

/** A session that ended so long ago, or still runs, with a decision log. */
function keep(id: string, ended: number | null): void {
  const directory = path.join(home, "sessions", id);
  mkdirSync(path.join(directory, "log"), { recursive: true });
  writeFileSync(path.join(directory, "log/decisions.jsonl"), "{}\n");
  const record = { version: 2, id, owner: { pid: 1, start: "1", machine: "m" }, engine: "docker", container: `agentbox-${id}`, topology: "container", holder: null, firewall: true, project: "/p", agent: "shell" };
  const times = { started: new Date(now - 60 * day).toISOString(), ended: ended === null ? null : { time: new Date(now - ended).toISOString(), exitCode: 0 } };
  writeFileSync(path.join(directory, "session.json"), JSON.stringify({ ...record, ...times }));
}

function left(): string[] {
  return readdirSync(path.join(home, "sessions")).toSorted();
}

test("keeps the newest twenty, of the last fourteen days", async () => {
  for (let number = 10; number < 35; number += 1) keep(`s${number}`, number * 60_000);
  await expireSessions(home, now);
  expect(left()).toEqual(Array.from({ length: 20 }, (_, index) => `s${10 + index}`));
});

test("removes what ended more than fourteen days ago, with its log", async () => {
  keep("new", 13 * day);
  keep("old", 15 * day);
  await expireSessions(home, now);
  expect(left()).toEqual(["new"]);
});

test("never removes a session that runs, however old, and none of another version", async () => {
  keep("running", null);
  keep("foreign", 15 * day);
  writeFileSync(path.join(home, "sessions/foreign/session.json"), JSON.stringify({ version: 3, ended: null }));
  await expireSessions(home, now);
  expect(left()).toEqual(["foreign", "running"]);
});

test("leaves what somebody else put into a session's directory", async () => {
  keep("old", 15 * day);
  writeFileSync(path.join(home, "sessions/old/notes.txt"), "mine");
  await expireSessions(home, now);
  expect(existsSync(path.join(home, "sessions/old/notes.txt"))).toBe(true);
  expect(await readSessions(home)).toEqual([]);
});
