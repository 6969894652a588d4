import { quotePath } from "../policy/parsed.ts";
import type { AuditedOperation } from "./audit-logger.ts";
import type { FileStream } from "./file-stream.ts";
import { endWith } from "./guarded-operation.ts";
import { GuardError } from "./errors.ts";

/** A large file that is being read; the log gets its outcome at the end, at a break, or by `close` where nobody reads it. */
export class AuditedStream implements AsyncIterable<Uint8Array> {
  readonly #stream: FileStream;
  readonly #operation: AuditedOperation;
  #isTaken = false;

  constructor(stream: FileStream, operation: AuditedOperation) {
    this.#stream = stream;
    this.#operation = operation;
  }

  /** Releases a stream that nobody will read; one that is being read ends with its reader. */
  close(): void {
    if (this.#isTaken) return;
    this.#isTaken = true;
    this.#stream.close();
    this.#operation.end({ outcome: "done", size: 0 });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    // A second reader fails here, and says nothing about what the first one got.
    if (this.#isTaken) throw new Error("a stream is read once, and this one was read or closed before");
    this.#isTaken = true;
    let size = 0;
    try {
      for await (const piece of this.#stream) {
        size += piece.length;
        yield piece;
      }
      this.#operation.end({ outcome: "done", size, digest: this.#stream.digest });
    } catch (error) {
      endWith(this.#operation, error);
      throw error;
    } finally {
      // A reader that stopped early; after any other end this says nothing, since the first outcome counts.
      this.#operation.end({ outcome: "done", size });
    }
  }
}

/** Contents that may not become larger than they were announced, since by that they were judged. */
export async function* limitStream(content: AsyncIterable<Uint8Array>, size: number, path: string): AsyncGenerator<Uint8Array, void, undefined> {
  let left = size;
  for await (const piece of content) {
    left -= piece.length;
    if (left < 0) throw new GuardError("rule", "size-hint", { what: `${quotePath(path)} would be larger than the ${size} bytes that were announced`, fix: "announce its size, or leave sizeHint out and have it asked about" });
    yield piece;
  }
}
