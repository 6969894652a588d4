import { createHash } from "node:crypto";
import { createReadStream, rmSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { Case } from "../measure.ts";
import { type GuardedPlace, SESSION } from "./place.ts";

const MIB = 1024 ** 2;

/** The most memory that was taken beyond what was there before. */
export class PeakMemory {
  most = 0;

  async watch<T>(run: (look: () => void) => Promise<T>): Promise<T> {
    const before = process.memoryUsage.rss();
    return await run(() => {
      this.most = Math.max(this.most, process.memoryUsage.rss() - before);
    });
  }
}

/** One large file, read and written as a stream; a sample is MiB a second. The plain reads are those of Node as they come, and with pieces of the guard's size. */
export function makeStreams({ sandbox, root, plain }: GuardedPlace, mib: number, memory: PeakMemory): Case[] {
  const path = join(root, "large");
  const piece = Buffer.alloc(MIB, "a piece of a large file; ");
  writeFileSync(path, "");
  for (let index = 0; index < mib; index += 1) writeFileSync(path, piece, { flag: "a", flush: index === mib - 1 });
  const request = { sessionId: SESSION, taskId: "streams" };
  const readGuarded = async () =>
    await memory.watch(async (look) => {
      const { content } = await sandbox.files.readFile({ ...request, path, intent: "read" });
      let bytes = 0;
      if (content === undefined || content instanceof Uint8Array) throw new Error("a large file comes as a stream");
      for await (const part of content) {
        bytes += part.length;
        look();
      }
      if (bytes !== mib * MIB) throw new Error("not all of it was read");
    });
  const writeGuarded = async () =>
    await memory.watch(async (look) => {
      const target = join(root, "written-large");
      await sandbox.files.writeFile({ ...request, path: target, intent: "write", content: repeat(piece, mib, look) });
      rmSync(target);
    });
  return [
    { name: "createReadStream", run: async () => await timeMib(mib, async () => await readPlainly(createReadStream(path), () => undefined)) },
    { name: "createReadStream, pieces of 1 MiB", run: async () => await timeMib(mib, async () => await readPlainly(openPieces(path), () => undefined)) },
    { name: "createReadStream, pieces of 1 MiB, SHA-256", run: async () => await timeMib(mib, async () => await readDigested(path)) },
    { name: "guarded stream read, SHA-256 included", run: async () => await timeMib(mib, readGuarded) },
    { name: "stream write and fsync", run: async () => await timeMib(mib, async () => await writePlainly(join(plain, "large"), piece, mib)) },
    { name: "guarded stream write, SHA-256 included", run: async () => await timeMib(mib, writeGuarded) },
  ];
}

async function timeMib(mib: number, run: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await run();
  return (mib * 1000) / (performance.now() - started);
}

function openPieces(path: string): AsyncIterable<Uint8Array> {
  return createReadStream(path, { highWaterMark: MIB });
}

async function readPlainly(stream: AsyncIterable<Uint8Array>, take: (piece: Uint8Array) => void): Promise<void> {
  for await (const piece of stream) take(piece);
}

async function readDigested(path: string): Promise<void> {
  const hash = createHash("sha256");
  await readPlainly(openPieces(path), (piece) => void hash.update(piece));
  hash.digest("hex");
}

async function writePlainly(path: string, piece: Uint8Array, count: number): Promise<void> {
  const file = await open(path, "w");
  try {
    for (let index = 0; index < count; index += 1) await file.write(piece);
    await file.sync();
  } finally {
    await file.close();
  }
  rmSync(path);
}

async function* repeat(piece: Uint8Array, count: number, look: () => void): AsyncGenerator<Uint8Array, void, undefined> {
  for (let index = 0; index < count; index += 1) {
    yield piece;
    look();
  }
}
