import { randomBytes } from "node:crypto";
import { closeSync, constants, fstatSync, linkSync, lstatSync, mkdirSync, openSync, readdirSync, readSync, rmSync, type Stats, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "../policy/errors.ts";
import { type HeldDirectory, systemHandles } from "./held-path.ts";

/** The content of a file, or what is wrong with what stands in its place. */
export type PrivateFile = { content: string } | { flaw: "missing" | "foreign" };

/** Beyond this a file is none that the guard wrote. */
const MAX_BYTES = 256 * 1024;
const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants;

/**
 * A directory below `~/.agentbox` that only its owner enters, held open: what is done goes to the directory that was
 * judged, whatever its name leads to later. Links, other owners and rights of others are refused, in it and
 * on the way to it.
 */
export class PrivateDirectory {
  readonly path: string;
  private readonly held: HeldDirectory;

  private constructor(held: HeldDirectory) {
    this.held = held;
    this.path = held.path;
  }

  /**
   * Opens `names` below `agentboxHome`, and makes what is missing where `make` says so; undefined where it is missing
   * otherwise. Throws ConfigError for a directory that is not private.
   */
  static open(agentboxHome: string, names: readonly string[], { make }: { make: boolean }): PrivateDirectory | undefined {
    let held = openHome(agentboxHome, make);
    for (const name of names) {
      if (held === undefined) return undefined;
      const above: HeldDirectory = held;
      try {
        held = openBelow(above, name, make);
      } finally {
        closeSync(above.fd);
      }
    }
    return held === undefined ? undefined : new PrivateDirectory(held);
  }

  close(): void {
    closeSync(this.held.fd);
  }

  names(): string[] {
    return readdirSync(systemHandles.itself(this.held.fd));
  }

  /** A path of an entry for those who can use nothing else. */
  locate(name: string): string {
    return systemHandles.below(this.held, name);
  }

  /** Whether a file of this name is there that nobody else could have written; it is not opened. */
  has(name: string): boolean {
    const stat = lstatSync(this.locate(name), { throwIfNoEntry: false });
    return stat?.isFile() === true && isPrivate(stat);
  }

  /** Reads a small file that nobody else could have written. Nothing blocks it, and no link leads it away. */
  read(name: string): PrivateFile {
    let fd: number;
    try {
      // A FIFO would wait, and a device may act when it is opened.
      if (!lstatSync(this.locate(name)).isFile()) return { flaw: "foreign" };
      fd = openSync(this.locate(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    } catch (error) {
      return { flaw: codeOf(error) === "ENOENT" ? "missing" : "foreign" };
    }
    try {
      const stat = fstatSync(fd);
      if (!stat.isFile() || !isPrivate(stat) || stat.size > MAX_BYTES) return { flaw: "foreign" };
      const buffer = Buffer.alloc(MAX_BYTES + 1);
      let length = 0;
      for (let bytes = -1; bytes !== 0 && length < buffer.length; length += bytes) bytes = readSync(fd, buffer, length, buffer.length - length, null);
      return length > MAX_BYTES ? { flaw: "foreign" } : { content: buffer.toString("utf8", 0, length) };
    } finally {
      closeSync(fd);
    }
  }

  /** Writes a new file, whole or not at all; false where the name is taken, by whatever. Throws what the system says. */
  add(name: string, content: string): boolean {
    const draft = this.locate(`.${randomBytes(12).toString("hex")}.new`);
    const fd = openSync(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    try {
      try {
        writeFileSync(fd, content);
      } finally {
        closeSync(fd);
      }
      // Unlike a rename, a link replaces nothing.
      linkSync(draft, this.locate(name));
      return true;
    } catch (error) {
      if (codeOf(error) === "EEXIST") return false;
      throw error;
    } finally {
      rmSync(draft, { force: true });
    }
  }

  /** Removes an entry that is no directory; what is not there, or cannot be removed, is left. */
  remove(name: string): void {
    try {
      rmSync(this.locate(name), { force: true });
    } catch {
      // A directory in a file's place stays, and is never taken for the file.
    }
  }
}

function openHome(agentboxHome: string, make: boolean): HeldDirectory | undefined {
  try {
    if (make) mkdirSync(agentboxHome, { recursive: true, mode: 0o700 });
    // The user may have put it anywhere, by a link as well.
    const fd = openSync(agentboxHome, O_RDONLY | constants.O_DIRECTORY);
    return judge({ fd, path: agentboxHome }, 0o022);
  } catch (error) {
    if (codeOf(error) === "ENOENT" && !make) return undefined;
    throw error instanceof ConfigError ? error : refuse(agentboxHome, `cannot be opened (${codeOf(error)})`, error);
  }
}

function openBelow(above: HeldDirectory, name: string, make: boolean): HeldDirectory | undefined {
  const path = join(above.path, name);
  const reached = systemHandles.below(above, name);
  try {
    if (make) makeDirectory(reached);
    return judge({ fd: openSync(reached, O_RDONLY | constants.O_DIRECTORY | O_NOFOLLOW), path }, 0o077);
  } catch (error) {
    if (codeOf(error) === "ENOENT" && !make) return undefined;
    if (error instanceof ConfigError) throw error;
    // Linux says ENOTDIR of a link, too.
    const link = codeOf(error) === "ELOOP" || codeOf(error) === "ENOTDIR";
    throw refuse(path, link ? "is a link, or no directory" : `cannot be opened (${codeOf(error)})`, error);
  }
}

function makeDirectory(path: string): void {
  try {
    mkdirSync(path, 0o700);
  } catch (error) {
    // What stands there is judged when it is opened.
    if (codeOf(error) !== "EEXIST") throw error;
  }
}

function judge(held: HeldDirectory, others: number): HeldDirectory {
  const stat = fstatSync(held.fd);
  if (isPrivate(stat, others)) return held;
  closeSync(held.fd);
  throw refuse(held.path, isOwn(stat) ? "may be used by other users" : `belongs to uid ${stat.uid}`, undefined);
}

/** Who owns a file can change its rights at any time. */
function isPrivate(stat: Stats, others = 0o077): boolean {
  return isOwn(stat) && (stat.mode & others) === 0;
}

function isOwn({ uid }: Stats): boolean {
  return process.geteuid === undefined || uid === process.geteuid();
}

function refuse(path: string, what: string, cause: unknown): ConfigError {
  return new ConfigError({ what: `this directory ${what}`, expected: "a directory of your own that nobody else may use", fix: "look at what is in it; then remove it, or: chmod 700", place: { file: path } }, { cause });
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : String(error);
}
