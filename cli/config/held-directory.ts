import { constants } from "node:fs";
import { type FileHandle, open, readlink, realpath, stat } from "node:fs/promises";
import { ConfigError } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import { errorCode } from "../workspace/path-fact.ts";

/**
 * Opens a directory and runs `action` with a path of what was opened, which stays what it is whoever exchanges
 * the names that led to it: a box of a parent directory can. `directory` is a real path; `name` is the file
 * in messages. Throws ConfigError where a link stands at the directory or anywhere above it.
 */
export async function withHeldDirectory<T>({ directory, name }: { directory: string; name: string }, action: (held: string) => Promise<T>): Promise<T> {
  const handle = await openDirectory(directory, name);
  try {
    const held = await locate(handle, directory);
    if (held === undefined) throw refuseLink(directory, name);
    return await action(held);
  } finally {
    await handle.close();
  }
}

async function openDirectory(directory: string, name: string): Promise<FileHandle> {
  try {
    return await open(directory, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  } catch (error) {
    const code = errorCode(error);
    // Linux says ENOTDIR of a link, too.
    if (code === "ELOOP" || code === "ENOTDIR") throw refuseLink(directory, name);
    throw new ConfigError({ what: `${quotePath(directory)} cannot be opened (${code})`, expected: "a directory that you may write", fix: "correct its permissions", place: { file: name } }, { cause: error });
  }
}

/** A path of the opened directory; undefined where it does not lie at `directory`. */
async function locate(handle: FileHandle, directory: string): Promise<string | undefined> {
  if (process.platform === "linux") {
    const own = `/proc/self/fd/${handle.fd}`;
    // The kernel's word on where it lies, with no link left in it.
    return (await readlink(own)) === directory ? own : undefined;
  }
  const [real, named, opened] = await Promise.all([realpath(directory), stat(directory), handle.stat()]);
  return real === directory && named.dev === opened.dev && named.ino === opened.ino ? directory : undefined;
}

function refuseLink(directory: string, name: string): ConfigError {
  return new ConfigError({ what: `${quotePath(directory)} is a link, or lies below one, or is no directory`, expected: "a directory", fix: "replace the link by what it leads to", place: { file: name } });
}
