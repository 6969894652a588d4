import { mkdirSync, writeFileSync } from "node:fs";
import { open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import type { Case } from "../measure.ts";
import { type GuardedPlace, SESSION, timeEach } from "./place.ts";

const CONTENT = Buffer.alloc(4096, "4 KB of text. ");
const DEEP = "one/two/three/four/five";
const READS = 500;
const WRITES = 40;

/** Reads of a file, the file six components deep. */
export function makeReads({ sandbox, root }: GuardedPlace): Case[] {
  mkdirSync(join(root, DEEP), { recursive: true });
  const path = join(root, DEEP, "file.txt");
  writeFileSync(path, CONTENT);
  return [
    { name: "readFile, 4 KB, six components deep", run: async () => await timeEach(READS, async () => await readFile(path)) },
    { name: "guarded read of it", run: async () => await timeEach(READS, async () => await sandbox.files.readFile({ sessionId: SESSION, taskId: "reads", path, intent: "read" })) },
  ];
}

/** Writes in two directories of the same kind, so that neither has the other's entries. */
export function makeWrites({ sandbox, root, plain }: GuardedPlace): Case[] {
  for (const directory of [root, plain]) mkdirSync(join(directory, "written"));
  let turn = 0;
  const guard = async (path: string) => await sandbox.files.writeFile({ sessionId: SESSION, taskId: "writes", path, intent: "write", content: CONTENT });
  return [
    { name: "write, fsync, rename, 4 KB", run: async () => await timeEach(WRITES, async () => await writePlainly(join(plain, "written", `file-${(turn += 1)}`))) },
    { name: "write, fsync, rename over a file", run: async () => await timeEach(WRITES, async (index) => await writePlainly(join(plain, "written", `replaced-${index}`))) },
    { name: "guarded write, new file", run: async () => await timeEach(WRITES, async () => await guard(join(root, "written", `file-${(turn += 1)}`))) },
    { name: "guarded write over a file, with a yes for the session", run: async () => await timeEach(WRITES, async (index) => await guard(join(root, "written", `replaced-${index}`))) },
  ];
}

async function writePlainly(path: string): Promise<void> {
  const file = await open(`${path}.new`, "wx");
  try {
    await file.writeFile(CONTENT);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
}
