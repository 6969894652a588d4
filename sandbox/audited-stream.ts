import type { AuditedOperation } from "./audit-logger.ts";
import type { FileStream } from "./file-stream.ts";
import { endWith } from "./guarded-operation.ts";
import { GuardError } from "./errors.ts";

/** A large file that is being read; the log gets its outcome at the end, at a break, or by `close` where nobody reads it. */
export class AuditedStream implements AsyncIterable<Uint8Array> {
  readonly #stream: FileStream;
  readonly #operation: AuditedOperation;

  constructor(stream: FileStream, operation: AuditedOperation) {
    this.#stream = stream;
    this.#operation = operation;
  }

  /** Releases a stream that nobody will read. */
  close(): void {
    this.#stream.close();
    this.#operation.end({ outcome: "done", size: 0 });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    let size = 0;
    try {
      for await (const piece of this.#stream) {
        size += piece.length;
        yield piece;
      }
    } catch (error) {
      endWith(this.#operation, error);
      throw error;
    } finally {
      // The first outcome counts: after an error this says nothing.
      this.#operation.end({ outcome: "done", size, digest: this.#stream.digest });
    }
  }
}

/** Contents that may not become larger than they were announced, since by that they were judged. */
export async function* limitStream(content: AsyncIterable<Uint8Array>, size: number, path: string): AsyncGenerator<Uint8Array, void, undefined> {
  let left = size;
  for await (const piece of content) {
    left -= piece.length;
    if (left < 0) throw new GuardError("rule", "size-hint", { what: `${path} would be larger than the ${size} bytes that were announced`, fix: "announce its size, or leave sizeHint out and have it asked about" });
    yield piece;
  }
}
