import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type GuardedPlace, SESSION } from "./place.ts";

const TASKS = 100;
const TURNS = 4;

/** A hundred tasks that write and read at once; microseconds for each operation. Every one has to be in the sums of its task. */
export async function runTasks({ sandbox, root }: GuardedPlace): Promise<number> {
  mkdirSync(join(root, "tasks"), { recursive: true });
  const started = performance.now();
  const summaries = await Promise.all(Array.from({ length: TASKS }, async (_, index) => await runTask(sandbox, join(root, "tasks"), `task-${index}`)));
  const us = ((performance.now() - started) * 1000) / (TASKS * TURNS * 2);
  if (summaries.some(({ counts }) => counts.written !== TURNS || counts.read !== TURNS)) throw new Error("the log lost an operation");
  return us;
}

async function runTask(sandbox: GuardedPlace["sandbox"], directory: string, taskId: string) {
  const request = { sessionId: SESSION, taskId, path: join(directory, taskId) };
  for (let turn = 0; turn < TURNS; turn += 1) {
    await sandbox.files.writeFile({ ...request, intent: "write", content: `turn ${turn}` });
    await sandbox.files.readFile({ ...request, intent: "read" });
  }
  return await sandbox.endTask(taskId);
}
