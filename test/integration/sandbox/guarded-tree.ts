import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FileError, GuardError } from "../../../sandbox/errors.ts";
import { FileSystemDriver, type FileSystemDriverOptions } from "../../../sandbox/file-system-driver.ts";
import type { Grant, GrantSpec } from "../../../sandbox/grant.ts";
import { GrantManager, type GrantManagerOptions } from "../../../sandbox/grant-manager.ts";
import { PathResolver } from "../../../sandbox/path-resolver.ts";
import type { FileContent, Intent } from "../../../sandbox/request.ts";

/** What lies outside of the root: whoever reads it has escaped. */
export const CANARY = "canary: nobody in the sandbox ever reads this";

export const everything = { read: true, write: true, create: true, delete: true };
export const session = "s1";

/** A granted root beside a directory that is not, and the guard's parts over them. */
export type GuardedTree = {
  place: string;
  root: string;
  outside: string;
  grants: GrantManager;
  grant: Grant;
  resolver: PathResolver;
  driver: FileSystemDriver;
  read(path: string): Promise<string>;
  write(path: string, content: FileContent, intent?: "write" | "create"): Promise<void>;
  remove(path: string): Promise<string | undefined>;
  move(from: string, to: string, options?: { overwrite?: boolean; intent?: "move" | "rename" }): Promise<void>;
  list(path: string, recursive?: boolean): Promise<string[]>;
  end(): Promise<void>;
};

export type TreeOptions = { spec?: Partial<GrantSpec>; grants?: GrantManagerOptions; driver?: Omit<FileSystemDriverOptions, "grants"> };

export function makeGuardedTree({ spec = {}, grants: grantOptions = {}, driver: driverOptions = {} }: TreeOptions = {}): GuardedTree {
  const place = realpathSync(mkdtempSync(join(tmpdir(), "agentbox-guard-")));
  const [root, outside] = [join(place, "root"), join(place, "outside")];
  mkdirSync(root);
  mkdirSync(join(outside, "sub"), { recursive: true });
  writeFileSync(join(outside, "canary.txt"), CANARY);
  writeFileSync(join(outside, "sub/canary.txt"), CANARY);
  const grants = new GrantManager({ home: join(place, "home"), ...grantOptions });
  const grant = grants.add({ sessionId: session, root, access: everything, ...spec });
  const resolver = new PathResolver(grants, grantOptions.handles);
  const driver = new FileSystemDriver({ grants, ...(grantOptions.handles === undefined ? {} : { handles: grantOptions.handles }), ...driverOptions });
  const locate = (path: string, intent: Intent) => resolver.locate({ sessionId: session, path, intent });
  return {
    place,
    root,
    outside,
    grants,
    grant,
    resolver,
    driver,
    async read(path) {
      using located = locate(path, "read");
      return collectText((await driver.read(located)).content);
    },
    async write(path, content, intent = "write") {
      using located = locate(path, intent);
      await driver.write(located, content);
    },
    async remove(path) {
      using located = locate(path, "delete");
      return (await driver.delete(located)).trashId;
    },
    async move(from, to, { overwrite = false, intent = "move" } = {}) {
      const { source, destination } = resolver.locateMove({ sessionId: session, path: from, destinationPath: to, intent });
      try {
        await driver.move(source, destination, { overwrite });
      } finally {
        source.close();
        destination.close();
      }
    },
    async list(path, recursive = false) {
      using located = locate(path, "list");
      const { entries } = await driver.list(located, { recursive, limit: 10_000 });
      return entries.map((entry) => entry.path.slice(root.length + 1)).toSorted();
    },
    async end() {
      await driver.settle();
      grants.endSession(session);
      rmSync(place, { recursive: true, force: true });
    },
  };
}

async function collectText(content: Uint8Array | AsyncIterable<Uint8Array>): Promise<string> {
  if (content instanceof Uint8Array) return Buffer.from(content).toString();
  const pieces: Uint8Array[] = [];
  for await (const piece of content) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

/** What an operation ended with: `done`, the refusal, or the kernel's word. A bug is thrown on. */
export async function outcomeOf(operate: () => unknown): Promise<string> {
  try {
    await operate();
    return "done";
  } catch (error) {
    if (error instanceof GuardError) return error.refusal;
    if (error instanceof FileError) return error.code;
    throw error;
  }
}

/** Every name below a directory with kind, rights, contents and inode, as one comparable text. */
export function takeSnapshot(directory: string): string {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .toSorted()
    .map((name) => {
      const path = join(directory, name);
      const stat = lstatSync(path);
      const content = stat.isFile() ? createHash("sha256").update(readFileSync(path)).digest("hex") : stat.isSymbolicLink() ? readlinkSync(path) : "";
      return [name, stat.mode.toString(8), stat.ino, stat.nlink, content].join(" ");
    })
    .join("\n");
}

/** Names of handles that this process holds, for showing that none is left behind. */
export function countHandles(): number {
  return readdirSync("/proc/self/fd").length;
}
