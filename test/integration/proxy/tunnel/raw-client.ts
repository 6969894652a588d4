import { once } from "node:events";
import { connect, type Socket } from "node:net";

const NEVER_MS = 20_000;

/** A client that speaks in bytes, and gathers what it hears. */
export class RawClient implements AsyncDisposable {
  readonly socket: Socket;
  ended = false;
  closed = false;
  error: NodeJS.ErrnoException | undefined;
  private heard: Buffer = Buffer.alloc(0);
  private wake: () => void = () => undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (bytes: Buffer) => {
      this.heard = Buffer.concat([this.heard, bytes]);
      this.wake();
    });
    socket.on("end", () => this.tell(() => (this.ended = true)));
    socket.on("error", (error) => this.tell(() => (this.error = error)));
    socket.on("close", () => this.tell(() => (this.closed = true)));
  }

  static async open(port: number): Promise<RawClient> {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
    await once(socket, "connect");
    return new RawClient(socket);
  }

  /** Sends the parts one after the other, each in a segment of its own. */
  async send(...parts: readonly (Buffer | string)[]): Promise<void> {
    for (const part of parts) {
      this.socket.write(part);
      if (parts.length > 1) await new Promise((resolve) => void setTimeout(resolve, 2));
    }
  }

  /** Sends each byte in a segment of its own. */
  async trickle(bytes: Buffer): Promise<void> {
    for (const byte of bytes) {
      this.socket.write(Buffer.from([byte]));
      await new Promise((resolve) => void setImmediate(resolve));
    }
  }

  /** Takes exactly so many bytes; fewer where the other side ends. */
  async take(count: number): Promise<Buffer> {
    await this.until(() => this.heard.length >= count);
    const taken = this.heard.subarray(0, count);
    this.heard = this.heard.subarray(taken.length);
    return taken;
  }

  /** Takes the head of an answer in HTTP, with its end. */
  async takeHead(): Promise<string> {
    await this.until(() => this.heard.includes("\r\n\r\n"));
    const end = this.heard.indexOf("\r\n\r\n");
    return (await this.take(end < 0 ? this.heard.length : end + 4)).toString("latin1");
  }

  /** Takes everything until the other side ends. */
  async rest(): Promise<Buffer> {
    await this.until(() => false);
    return await this.take(this.heard.length);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.socket.destroy();
    return Promise.resolve();
  }

  private async until(isThere: () => boolean): Promise<void> {
    const timer = setTimeout(() => this.socket.destroy(new Error("nothing came")), NEVER_MS);
    while (!isThere() && !this.ended && !this.closed) await new Promise<void>((resolve) => (this.wake = resolve));
    clearTimeout(timer);
    if (this.error?.message === "nothing came") throw this.error;
  }

  private tell(change: () => void): void {
    change();
    this.wake();
  }
}
