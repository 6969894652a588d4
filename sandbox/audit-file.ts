import { chmodSync, closeSync, constants, fdatasync, fchmodSync, fstatSync, fsyncSync, ftruncateSync, lstatSync, mkdirSync, openSync, readSync, type Stats, writeSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

export const AUDIT_LOG_FILE = "audit.jsonl";
/** More than two of the longest lines. */
const TAIL_BYTES = 512 * 1024;
const MAX_TORN_FILES = 10_000;

/** What stands at the end of a log: its last whole line, without the line end, and the bytes behind it. */
export type LogTail = { last: string | undefined; torn: Buffer };

/**
 * The file of an audit log, open for one writer. Only whole lines are left in it: what a full disk took of a
 * line is cut off again. Every method throws what the system says, or an Error that says what is wrong.
 */
export class AuditFile {
  readonly path: string;
  private readonly directory: string;
  private readonly fd: number;
  private readonly identity: { dev: number; ino: number };
  /** Bytes of whole lines; behind them lie `leftover` bytes of a line that failed and could not be cut off yet. */
  private size = 0;
  private leftover = 0;

  /** Opens the log in `directory` (0700, made where it is missing), or makes it (0600). No link is followed. */
  constructor(directory: string) {
    this.directory = directory;
    this.path = join(directory, AUDIT_LOG_FILE);
    makeOwnDirectory(directory);
    const { O_RDWR, O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants;
    this.fd = openSync(this.path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600);
    try {
      const stat = fstatSync(this.fd);
      if (!stat.isFile()) throw new Error("it is no regular file");
      if (stat.nlink !== 1) throw new Error("the file has another name");
      requireOwn(stat);
      if ((stat.mode & 0o777) !== 0o600) fchmodSync(this.fd, 0o600);
      this.identity = { dev: stat.dev, ino: stat.ino };
    } catch (error) {
      closeSync(this.fd);
      throw error;
    }
  }

  /** Reads the end of the log, which is its writer's only from when the lock is held. */
  readTail(): LogTail {
    this.size = fstatSync(this.fd).size;
    const start = Math.max(0, this.size - TAIL_BYTES);
    const bytes = Buffer.alloc(this.size - start);
    const tail = bytes.subarray(0, readSync(this.fd, bytes, 0, bytes.length, start));
    const end = tail.lastIndexOf(0x0a);
    if (end === -1 && start > 0) throw new Error(`its last ${TAIL_BYTES} bytes hold no line end`);
    if (end === -1) return { last: undefined, torn: tail };
    const begin = end === 0 ? 0 : tail.lastIndexOf(0x0a, end - 1) + 1;
    return { last: tail.toString("utf8", begin, end), torn: tail.subarray(end + 1) };
  }

  /** Moves the bytes behind the last whole line into a file beside the log, and returns that file's name. */
  setAside(torn: Buffer): string {
    const { name, fd } = this.openAside();
    try {
      writeAll(fd, torn);
      // Only what is kept for certain may be cut off.
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    ftruncateSync(this.fd, this.size - torn.length);
    this.size -= torn.length;
    return name;
  }

  private openAside(): { name: string; fd: number } {
    for (let number = 1; number <= MAX_TORN_FILES; number += 1) {
      const name = `audit.torn-${number}`;
      try {
        return { name, fd: openSync(join(this.directory, name), "wx", 0o600) };
      } catch (error) {
        if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
      }
    }
    throw new Error(`${MAX_TORN_FILES} torn lines lie beside it`);
  }

  /**
   * Throws where the log's name does not lead to this file any more, or another wrote into it: what is appended
   * then is in no log that anybody reads.
   */
  check(): void {
    const stat = lstatSync(this.path, { throwIfNoEntry: false });
    if (stat === undefined) throw new Error("it was removed");
    if (stat.ino !== this.identity.ino || stat.dev !== this.identity.dev) throw new Error("another file was put in its place");
    if (stat.nlink !== 1) throw new Error("the file got another name");
    if (stat.size !== this.size + this.leftover) throw new Error("somebody else wrote into it or cut it off");
  }

  /** Appends one line. Where that fails nothing of it stays. */
  append(line: string): void {
    this.cutLeftover();
    const bytes = Buffer.from(`${line}\n`);
    try {
      // One call takes the whole line, but on a disk that is almost full.
      while (this.leftover < bytes.length) this.leftover += writeSome(this.fd, bytes.subarray(this.leftover));
    } catch (error) {
      this.tryCut();
      throw error;
    }
    this.size += bytes.length;
    this.leftover = 0;
  }

  /** Waits until all that was appended is on the disk. */
  async sync(): Promise<void> {
    await syncData(this.fd);
  }

  close(): void {
    closeSync(this.fd);
  }

  private cutLeftover(): void {
    if (this.leftover > 0) ftruncateSync(this.fd, this.size);
    this.leftover = 0;
  }

  private tryCut(): void {
    try {
      this.cutLeftover();
    } catch {
      // The next line tries again, and is not written before that succeeds.
    }
  }
}

const syncData = promisify(fdatasync);

function makeOwnDirectory(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const stat = lstatSync(directory);
  if (!stat.isDirectory()) throw new Error("its directory is a link, or none");
  requireOwn(stat);
  if ((stat.mode & 0o777) !== 0o700) chmodSync(directory, 0o700);
}

/** What another user owns, that user can change at any time. */
function requireOwn({ uid }: Stats): void {
  if (process.getuid !== undefined && uid !== process.getuid()) throw new Error(`it belongs to uid ${uid}`);
}

function writeAll(fd: number, bytes: Buffer): void {
  for (let done = 0; done < bytes.length; ) done += writeSome(fd, bytes.subarray(done));
}

/** A system that takes nothing and calls it no failure would keep the caller for ever. */
function writeSome(fd: number, bytes: Buffer): number {
  const written = writeSync(fd, bytes);
  if (written === 0) throw new Error("the system takes no more bytes");
  return written;
}
