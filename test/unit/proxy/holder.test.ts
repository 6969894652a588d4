import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findFileHolder } from "../../../proxy/standalone/holder.ts";
import { lockLog } from "../../../proxy/standalone/log-lock.ts";

const LOCK = "const d = new (require('node:sqlite').DatabaseSync)(process.argv[1]); d.exec('BEGIN EXCLUSIVE'); console.log('held'); setInterval(() => 0, 1000)";

test("whoever holds a log is named, whatever ports it has, and nobody once it is gone", async () => {
  const dir = mkdtempSync(join(tmpdir(), "agentbox-holder-"));
  const file = join(dir, "log.lock");
  const holder = spawn(process.execPath, ["-e", LOCK, file], { stdio: ["ignore", "pipe", "ignore"] });
  await once(holder.stdout, "data");
  expect(() => lockLog(dir)).toThrow(new RegExp(`^process ${holder.pid} .* writes its log into .* already`));
  holder.kill("SIGKILL");
  await once(holder, "exit");
  const unlock = lockLog(dir);
  // The lock is this process's own now.
  expect(findFileHolder(file)).toBeUndefined();
  unlock();
  rmSync(dir, { recursive: true });
});
