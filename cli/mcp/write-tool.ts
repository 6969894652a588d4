import { z } from "zod";
import { UsageError } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import { type Call, refuseCancelled } from "./call.ts";
import { DEFAULT_TASK, path, taskId, type Tool } from "./tool.ts";
import { makeResult } from "./tool-result.ts";

/** Contents from here on are written in pieces, between which a call can be taken back. */
const PIECE_BYTES = 1024 * 1024;

const input = z.strictObject({
  path,
  content: z.string().describe("The whole new content of the file."),
  encoding: z.enum(["utf-8", "base64"]).optional().describe("How content is written here; utf-8 when left out."),
  intent: z.enum(["write", "create"]).optional().describe("create fails where the path is taken; write, when left out, replaces what is there, after a human agreed."),
  taskId,
});

/** Writes a file whole, or not at all. */
export const writeTool: Tool<typeof input> = {
  name: "write_file",
  title: "Write a file",
  description: "Write a whole file in a granted folder: afterwards it is the new one, or, where anything fails, still the old one. The intent create makes a new file only; write also replaces an existing one, which a human is asked about, so the call may take minutes. Directories on the way must be there (create_directory). Refused: paths outside of the granted folders or through links, hidden and system files unless they are granted, what a rule denies, more than the session may write, and what the human declines. When declined, do not write the same elsewhere: ask the user.",
  input,
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
  run: async ({ path: asked, content, encoding = "utf-8", intent = "write", taskId: task = DEFAULT_TASK }, { sandbox }, call) => {
    const bytes = decodeContent(content, encoding);
    const large = bytes.length > PIECE_BYTES;
    const done = await sandbox.files.writeFile({ sessionId: sandbox.sessionId, taskId: task, path: asked, intent, sizeHint: bytes.length, content: large ? giveInPieces(bytes, asked, call) : bytes });
    const { path: written, size = 0, digest, confirmed, verdict } = done;
    return makeResult(`Wrote ${size} bytes to ${quotePath(written)}.`, { path: written, intent, size, sha256: digest, confirmed, rule: verdict.ruleId, tags: verdict.tags });
  },
};

/** What is not exactly one of the two would be repaired in silence, and the file another than was meant. */
function decodeContent(content: string, encoding: "utf-8" | "base64"): Uint8Array {
  if (encoding === "utf-8") {
    if (content.isWellFormed()) return Buffer.from(content, "utf8");
    throw new UsageError({ what: "content is not well-formed Unicode", expected: "text without halves of surrogate pairs", fix: "send bytes that are no text with the encoding base64" });
  }
  const bytes = Buffer.from(content, "base64");
  if (bytes.toString("base64") === content) return bytes;
  throw new UsageError({ what: "content is not base64", expected: "the standard alphabet, padded, without line ends", fix: "encode the bytes again, or send text with the encoding utf-8" });
}

async function* giveInPieces(bytes: Uint8Array, asked: string, call: Call): AsyncGenerator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    refuseCancelled(call);
    yield bytes.subarray(at, at + PIECE_BYTES);
    call.report(`writing ${quotePath(asked)}`, Math.min(bytes.length, at + PIECE_BYTES), bytes.length);
  }
  // The last moment: after it the new file takes the old one's place.
  refuseCancelled(call);
}
