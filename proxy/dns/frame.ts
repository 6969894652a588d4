/** Puts the two bytes of its length in front of a message (RFC 1035, 4.2.2). */
export function writeFrame(message: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(message.length + 2);
  frame.writeUInt16BE(message.length, 0);
  message.copy(frame, 2);
  return frame;
}

/** Cuts a byte stream into messages, wherever its chunks begin and end. */
export class FrameReader {
  private readonly maxBytes: number;
  private buffered: Buffer = Buffer.alloc(0);

  /** `maxBytes`: the longest message that is taken. */
  constructor(maxBytes = 65_535) {
    this.maxBytes = maxBytes;
  }

  /** Takes a chunk and returns the messages that are whole now; undefined stands for a frame that is empty or too long, after which nothing can be read. */
  push(chunk: Buffer): readonly (Buffer | undefined)[] {
    this.buffered = this.buffered.length === 0 ? chunk : Buffer.concat([this.buffered, chunk]);
    const messages: (Buffer | undefined)[] = [];
    while (this.buffered.length >= 2) {
      const length = this.buffered.readUInt16BE(0);
      if (length === 0 || length > this.maxBytes) return [...messages, undefined];
      if (this.buffered.length < 2 + length) break;
      messages.push(this.buffered.subarray(2, 2 + length));
      this.buffered = this.buffered.subarray(2 + length);
    }
    return messages;
  }
}
