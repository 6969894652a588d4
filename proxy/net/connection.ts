import { createServer, type Server, Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { LARGE, releaseLarge, SHARED, sharedView, takeLarge } from "./read-buffer.ts";

/** Who reads a connection. */
export type Reader = {
  /** Bytes as they come; they are overwritten after the call. False stops the reading until `resume`. */
  onBytes: (bytes: Buffer) => boolean;
  /** The other side sends nothing more. */
  onEnd: () => void;
  /** The connection is gone, with the system's error if it had one. Called once. */
  onClose: (error: Error | undefined) => void;
};

const NOBODY: Reader = { onBytes: () => false, onEnd: () => undefined, onClose: () => undefined };
/** A flow that fills the shared buffer so often in a row gets a large one of its own. */
const BULKY = 2;

/**
 * A TCP connection that is read into buffers that all connections share, so that an idle one costs next to
 * nothing and a bulky one is not copied. Whoever keeps bytes beyond the call copies them.
 */
export class Connection {
  /** Bytes read and written so far. */
  bytesIn = 0;
  readonly socket: Socket;
  /** Its place among the open ones, and who is told when it is not open any more. */
  slot = -1;
  onGone: ((connection: Connection) => void) | undefined;
  private reader: Reader = NOBODY;
  private own: Buffer | undefined;
  private filled = 0;
  private error: Error | undefined;
  private closed = false;
  private ended = false;
  /** Somebody wants to read on, whatever the reader that is being called answers. */
  private wanted = false;

  /** An accepted handle, a socket that others opened (of TLS), or nothing: then it is still to be made by `socket.connect`. */
  constructor(from: { handle?: object; socket?: Socket } = {}) {
    this.socket = from.socket ?? this.open(from.handle);
    // A socket that others opened has no buffer of ours, and hands over its own.
    if (from.socket !== undefined) this.socket.on("data", (bytes: Buffer) => this.count(bytes) || this.socket.pause());
    this.socket.on("end", () => {
      this.ended = true;
      this.reader.onEnd();
    });
    this.socket.on("error", (error) => (this.error = error));
    this.socket.on("close", () => this.finish());
    if (from.socket !== undefined) this.socket.pause();
  }

  /** Hands everything that comes from now on to a reader, and begins to read. */
  read(reader: Reader): void {
    this.reader = reader;
    if (this.closed) reader.onClose(this.error);
    else if (this.ended) reader.onEnd();
    else this.resume();
  }

  /** Hands what comes to another reader; does not touch whether it is read. To be called from inside `onBytes` as well. */
  handTo(reader: Reader): void {
    this.reader = reader;
  }

  /** Reads again after `onBytes` answered false; from inside `onBytes` it outweighs the answer. */
  resume(): void {
    this.wanted = true;
    this.socket.resume();
    this.socket.read(0);
  }

  /** Writes; false where the system did not take all of it at once, and `onDrain` will tell when it has. The bytes must stay as they are until then. */
  write(bytes: Buffer | string): boolean {
    this.socket.write(bytes);
    return this.socket.writableLength === 0;
  }

  /** Writes what another connection read: copied where its buffer is shared. */
  writeRead(bytes: Buffer): boolean {
    return this.write(bytes.buffer === SHARED.buffer ? Buffer.from(bytes) : bytes);
  }

  /** Calls once everything written so far is with the system; never, where the connection ends before. */
  onDrain(action: () => void): void {
    const { socket } = this;
    // After its end nothing can be written any more, and no drain is told of.
    if (socket.writableEnded) socket.once("finish", action);
    // Node tells of a drain only where its high-water mark was passed; an empty write is done when all before it are.
    else if (socket.writableNeedDrain) socket.once("drain", action);
    else socket.write("", (error) => error ?? action());
  }

  /** Bytes written, also those that the system has not taken yet. */
  get bytesOut(): number {
    return this.socket.bytesWritten;
  }

  /** Sends what was written and says that nothing follows. */
  end(bytes?: Buffer | string): void {
    if (bytes !== undefined) this.socket.end(bytes);
    // A close says it too, and where nothing comes any more either it is all that is left to do.
    else if (this.ended && this.socket.writableLength === 0 && !(this.socket instanceof TLSSocket)) this.socket.destroy();
    else this.socket.end();
  }

  /** Sends what was written, and ends both directions: for a client that said that it sends nothing more. */
  close(): void {
    // What the system has it still delivers. TLS has a word to say first.
    if (this.socket.writableLength === 0 && !(this.socket instanceof TLSSocket)) this.socket.destroy();
    else this.socket.end();
  }

  /** Ends it at once; `reset` tells the other side that it was not meant to end here. */
  destroy(reset = false): void {
    // Only TCP knows a reset; TLS that ends without its closing alert says the same.
    if (reset && !this.socket.destroyed && !(this.socket instanceof TLSSocket)) this.socket.resetAndDestroy();
    else this.socket.destroy();
  }

  get isClosed(): boolean {
    return this.closed || this.socket.destroyed;
  }

  /** The other side sends nothing more. */
  get isEnded(): boolean {
    return this.ended;
  }

  /** It is open, and nothing has come of it. */
  get isFresh(): boolean {
    return !this.isClosed && !this.ended && this.bytesIn === 0;
  }

  private open(handle: object | undefined): Socket {
    const onread = { buffer: () => this.own ?? SHARED, callback: (length: number, buffer: Uint8Array) => this.take(length, buffer) };
    // `handle` is not in Node's documentation, but what its own server makes sockets with.
    const socket: unknown = Reflect.construct(Socket, [{ allowHalfOpen: true, onread, manualStart: true, handle }]);
    if (!(socket instanceof Socket)) throw new Error("Node made no socket");
    return socket;
  }

  private count(bytes: Buffer): boolean {
    this.bytesIn += bytes.length;
    this.wanted = false;
    const go = this.reader.onBytes(bytes);
    return go || this.wanted;
  }

  private take(length: number, buffer: Uint8Array): boolean {
    const go = this.count(buffer === SHARED ? sharedView(length) : Buffer.from(buffer.buffer, buffer.byteOffset, length));
    if (length < buffer.length) this.filled = 0;
    else if (this.own === undefined && (this.filled += 1) >= BULKY) this.own = takeLarge();
    // A flow that trickles again gives its buffer back, but not while a write may still read from it.
    if (go && this.own !== undefined && length < LARGE / 16) this.giveBack();
    return go;
  }

  private giveBack(): void {
    if (this.own !== undefined) releaseLarge(this.own);
    this.own = undefined;
  }

  private finish(): void {
    this.closed = true;
    // Not given back: a write to the peer may still hold it, and the collector knows.
    this.own = undefined;
    const { reader } = this;
    this.reader = NOBODY;
    this.onGone?.(this);
    reader.onClose(this.error);
  }
}

/** Where to listen: an address and port, or an inherited listening socket. */
export type ListenOn = { fd: number } | { host: string; port: number } | { path: string };

/** Listens, and hands over every connection. */
export async function listenFor(where: ListenOn, onConnection: (connection: Connection) => void): Promise<Server> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ ...where, backlog: 1024, exclusive: true }, () => {
      server.off("error", reject);
      server.on("error", () => undefined);
      takeHandles(server, (handle) => onConnection(new Connection({ handle })));
      resolve();
    });
  });
  return server;
}

/**
 * Takes accepted connections where Node makes sockets of them, which would be read into buffers of its making.
 * Called before the first can be there: Node accepts nothing before it is back in its loop.
 */
function takeHandles(server: Server, onHandle: (handle: object) => void): void {
  const listening: unknown = Reflect.get(server, "_handle");
  if (typeof listening !== "object" || listening === null || !Reflect.has(listening, "onconnection")) throw new Error("Node listens in another way than it did");
  // Out of descriptors there is no handle: the connection waits in the kernel until there is one again.
  Reflect.set(listening, "onconnection", (_status: number, handle: object | undefined) => handle !== undefined && onHandle(handle));
  // What a listening socket is set to its connections are as well, without a call for each.
  const setNoDelay: unknown = Reflect.get(listening, "setNoDelay");
  if (typeof setNoDelay === "function") Reflect.apply(setNoDelay, listening, [true]);
}
