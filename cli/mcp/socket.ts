import { chmodSync, lstatSync, mkdirSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { dirname } from "node:path";
import { OutputError, UsageError } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";

/** What the kernel's address of a socket holds, less its end. */
const MAX_PATH = 107;
const MAX_CLIENTS = 32;

/**
 * Listens on a unix socket of its own (mode 0600, in a directory 0700) and hands every client to `serve`; returns how to end
 * it. Throws UsageError where the path is taken by anything but a socket that a killed server left.
 */
export async function listenOnSocket(path: string, serve: (socket: Socket) => void): Promise<() => Promise<void>> {
  if (Buffer.byteLength(path) > MAX_PATH) throw new UsageError({ what: `${quotePath(path)} is too long for a socket`, expected: `at most ${MAX_PATH} bytes`, fix: "choose a shorter path" });
  makeOwnDirectory(dirname(path));
  await removeStale(path);
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    serve(socket);
  });
  server.maxConnections = MAX_CLIENTS;
  await listen(server, path);
  chmodSync(path, 0o600);
  return async () => await new Promise((resolve) => void server.close(() => resolve()));
}

/** Nobody else shall reach the socket, or put another into its place. */
function makeOwnDirectory(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const stat = lstatSync(directory);
    if (stat.isDirectory() && stat.uid === process.geteuid?.() && (stat.mode & 0o077) === 0) return;
  } catch (error) {
    throw new OutputError({ what: `${quotePath(directory)} cannot be made (${codeOf(error)})`, expected: "a directory of your own", fix: "choose another path" }, { cause: error });
  }
  throw new UsageError({ what: `${quotePath(directory)} may be used by others, or is a link`, expected: "a directory of your own with the mode 0700", fix: "choose another one, or: chmod 700" });
}

async function removeStale(path: string): Promise<void> {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return;
  const own = stat.isSocket() && stat.uid === process.geteuid?.();
  if (!own) throw new UsageError({ what: `${quotePath(path)} is there already, and no socket of yours`, expected: "a path that is free", fix: "choose another one" });
  if (await isServed(path)) throw new UsageError({ what: `${quotePath(path)} is served by another process`, expected: "a path that is free", fix: "end the other process, or choose another path" });
  rmSync(path, { force: true });
}

/** Only a refused connection says that nobody listens any more. */
async function isServed(path: string): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => resolve(true)).once("error", (error) => resolve(codeOf(error) !== "ECONNREFUSED"));
    socket.once("connect", () => socket.destroy());
  });
}

async function listen(server: Server, path: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(new OutputError({ what: `nothing can listen on ${quotePath(path)} (${codeOf(error)})`, expected: "a path on a disk that takes sockets", fix: "choose another one" }, { cause: error })));
    server.listen(path, resolve);
  });
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}
