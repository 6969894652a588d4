import { closeSync, constants, fstatSync, lstatSync, openSync, readSync } from "node:fs";
import { errorCode } from "./path-fact.ts";

/** The content of a regular file, and which file it was; or why there is none. */
export type PlainFile = { content: Buffer; device: number; inode: number };
export type Unread = { flaw: "missing" | "special" | "large" | "unreadable"; detail: string };

const CHUNK_BYTES = 64 * 1024;

/**
 * Reads a regular file of at most `maxBytes`; a link in its place is not followed. The path may be an
 * agent's: a pipe would stop the reader for ever, a device or a file of /proc would fill its memory.
 */
export function readPlainFile(path: string, maxBytes: number): PlainFile | Unread {
  let handle: number | undefined;
  try {
    // Some devices act when they are opened; what takes the file's place after this look is judged below.
    if (!lstatSync(path).isFile()) return { flaw: "special", detail: "is not a plain file" };
    handle = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY);
    const stat = fstatSync(handle);
    if (!stat.isFile()) return { flaw: "special", detail: "is not a plain file" };
    const content = stat.size > maxBytes ? null : readUpTo(handle, maxBytes);
    if (content === null) return { flaw: "large", detail: `has more than ${maxBytes} bytes` };
    return { content, device: stat.dev, inode: stat.ino };
  } catch (error) {
    const code = errorCode(error);
    return { flaw: code === "ENOENT" ? "missing" : "unreadable", detail: `cannot be read (${code})` };
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}

/** The size of a file says nothing where it grows or where the kernel makes it up. */
function readUpTo(handle: number, maxBytes: number): Buffer | null {
  const chunks: Buffer[] = [];
  for (let total = 0; total <= maxBytes; ) {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    const bytes = readSync(handle, chunk);
    if (bytes === 0) return Buffer.concat(chunks);
    chunks.push(chunk.subarray(0, bytes));
    total += bytes;
  }
  return null;
}
