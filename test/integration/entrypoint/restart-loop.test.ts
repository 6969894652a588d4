import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { restartForever } from "../../../entrypoint/start-proxy.ts";

// The loop that keeps the resolver running, with programs of sh in its place; keeper-faults.test.ts has the box.

/** Counts its starts; the first two come to nothing, as a Node that waits for a thread it cannot have. */
const HANGS_TWICE = 'echo start >>"$1"; [ "$(wc -l <"$1")" -gt 2 ] || exec sleep 1000; trap : ALRM; echo up >>"$1"; while :; do sleep 0.1; done';
const ENDS_AT_ONCE = 'echo start >>"$1"';

describe("a program that is started again for ever", () => {
  let dir = "";
  let loop: ChildProcess | undefined;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "agentbox-loop-"));
  });
  afterEach(async () => {
    if (loop?.pid !== undefined) process.kill(-loop.pid, "SIGKILL");
    await (loop === undefined ? undefined : once(loop, "close"));
    rmSync(dir, { recursive: true });
  });

  it.each([
    ["comes to nothing twice is killed and started again, and then runs on beyond its time", HANGS_TWICE, "start\nstart\nstart\nup\n"],
    ["ends is started again each time", ENDS_AT_ONCE, "start\nstart\nstart\nstart\nstart\n"],
  ])("that %s", async (_case, script, wanted) => {
    const file = join(dir, "starts");
    writeFileSync(file, "");
    const [command = "", ...args] = restartForever(["/bin/sh", "-c", script, "sh", file]);
    // A process group of its own, so that all of it can be ended.
    loop = spawn(command, args, { detached: true, stdio: "ignore" });
    await expect.poll(() => readFileSync(file, "utf8"), { timeout: 15_000, interval: 50 }).toContain(wanted);
    if (!wanted.endsWith("up\n")) return;
    await new Promise((resolve) => setTimeout(resolve, 5000));
    expect(readFileSync(file, "utf8")).toBe(wanted);
  });
});
