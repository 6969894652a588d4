import { z } from "zod";
import { quotePath } from "../../policy/parsed.ts";
import type { FileResponse } from "../../sandbox/request.ts";
import { type Call, refuseCancelled } from "./call.ts";
import { DEFAULT_TASK, path, taskId, type Tool } from "./tool.ts";
import { makeResult } from "./tool-result.ts";

const DEFAULT_BYTES = 256 * 1024;
/** A result is one message in memory, several times over: as bytes, as text and as JSON. */
const MAX_BYTES = 4 * 1024 * 1024;
/** The longest character of UTF-8 has four bytes. */
const MAX_TORN = 3;

const input = z.strictObject({
  path,
  offset: z.int().min(0).optional().describe("The first byte to return, from 0; 0 when left out."),
  length: z.int().min(1).max(MAX_BYTES).optional().describe(`The most bytes to return: up to ${MAX_BYTES}; ${DEFAULT_BYTES} when left out.`),
  taskId,
});

/** Reads a file, or a part of it; a large file is streamed and only the part asked for is kept. */
export const readTool: Tool<typeof input> = {
  name: "read_file",
  title: "Read a file",
  description: `Read a regular file of a granted folder. Text comes as UTF-8 (encoding "utf-8"), anything else as base64 (encoding "base64"). At most ${DEFAULT_BYTES} bytes come at once unless length says more; where truncated is true, go on with offset + length of the result. Refused: paths outside of the granted folders, links that lead elsewhere, devices, hidden and system files unless they are granted, and what a rule denies; large files are asked about. When refused, read the reason in the result and do what it says instead of trying other spellings of the path.`,
  input,
  annotations: { readOnlyHint: true, idempotentHint: true },
  run: async ({ path: asked, offset = 0, length = DEFAULT_BYTES, taskId: task = DEFAULT_TASK }, { sandbox }, call) => {
    const response = await sandbox.files.readFile({ sessionId: sandbox.sessionId, taskId: task, path: asked, intent: "read" });
    const { size = 0, digest, confirmed, verdict } = response;
    const part = await takePart(response, { offset, end: offset + length, call });
    const { encoding, content, bytes } = encode(part, offset + part.length < size);
    const truncated = offset > 0 || bytes < size;
    const structured = { path: response.path, encoding, content, offset, length: bytes, size, truncated: offset + bytes < size, sha256: digest, confirmed, rule: verdict.ruleId, tags: verdict.tags };
    const head = `${quotePath(response.path)}, bytes ${offset} to ${offset + bytes} of ${size}${encoding === "base64" ? ", base64" : ""}:\n`;
    return makeResult(truncated || encoding === "base64" ? `${head}${content}` : content, structured);
  },
};

async function takePart({ content, size = 0, path: shown }: FileResponse, { offset, end, call }: { offset: number; end: number; call: Call }): Promise<Uint8Array> {
  if (content === undefined) return new Uint8Array();
  if (content instanceof Uint8Array) return content.subarray(offset, end);
  const pieces: Uint8Array[] = [];
  let at = 0;
  // Leaving the loop closes the stream and writes down how much was read.
  for await (const piece of content) {
    refuseCancelled(call);
    const [from, to] = [Math.max(0, offset - at), Math.min(piece.length, end - at)];
    if (from < to) pieces.push(Uint8Array.from(piece.subarray(from, to)));
    at += piece.length;
    call.report(`reading ${quotePath(shown)}`, at, Math.min(size, end));
    if (at >= end) break;
  }
  return Buffer.concat(pieces);
}

function encode(part: Uint8Array, more: boolean): { encoding: "utf-8" | "base64"; content: string; bytes: number } {
  // The cut may go through a character; it is left to the next part.
  for (let cut = 0; cut <= (more ? Math.min(MAX_TORN, part.length - 1) : 0); cut += 1) {
    const whole = part.subarray(0, part.length - cut);
    const content = decode(whole);
    if (content !== undefined) return { encoding: "utf-8", content, bytes: whole.length };
  }
  return { encoding: "base64", content: Buffer.from(part).toString("base64"), bytes: part.length };
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    // The mark at the beginning stays, so that a file that is written back is the same.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
