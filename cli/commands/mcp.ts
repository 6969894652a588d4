import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Socket } from "node:net";
import { KnownError, renderComplaint, UsageError } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import type { SandboxConfig } from "../../policy/sandbox-schema.ts";
import { parseAccess } from "../../policy/sandbox-words.ts";
import { openConfirmationQueue } from "../../sandbox/confirmation-queue.ts";
import { type Granting, Sandbox } from "../../sandbox/sandbox.ts";
import type { McpCommand } from "../args-mcp.ts";
import { readConfigText } from "../config/config-text.ts";
import { readConfig, type SessionConfig, USER_CONFIG_NAME } from "../config/read-config.ts";
import { requireTrust } from "../config/trust.ts";
import type { Edge } from "../edge.ts";
import type { Host } from "../host.ts";
import { type Connection, openConnection, type Served } from "../mcp/connection.ts";
import { bindQueue, elicitation } from "../mcp/front-ends.ts";
import { listenOnSocket } from "../mcp/socket.ts";
import { expandTilde } from "../workspace/git-config.ts";
import { isWithin, resolvePath } from "../workspace/path-fact.ts";
import { findProject } from "./project-policy.ts";

/** Whoever does not read its answers is sent away before they fill the memory. */
const MAX_UNREAD = 64 * 1024 * 1024;
const WATCH_MS = 100;
/** The client sent more than a message may be, or went away while it was being answered. */
const BROKEN = 64;

/**
 * Serves the file guard to MCP clients until the client goes, or a signal comes, and returns the exit code. stdout is the
 * protocol's alone. This is a bundle of its own, whose errors the edge does not know: it tells them itself.
 */
export async function serveMcp(edge: Edge, command: McpCommand): Promise<number> {
  try {
    return await serve(edge, command);
  } catch (error) {
    if (!(error instanceof KnownError)) throw error;
    for (const complaint of error.complaints) edge.say(renderComplaint(complaint));
    return error.exitCode;
  }
}

async function serve({ host, say }: Edge, { session, grants, socket }: McpCommand): Promise<number> {
  const at = socket === undefined ? undefined : placeSocket(host, socket);
  const { config: { sandbox: config = {} }, texts, projectPath } = await readTrusted(host);
  const granted = grants.length > 0 ? grants.map(({ root, access }) => ({ root: resolve(host.cwd, expandTilde(root, host.home)), access })) : listConfigured(config, { host, projectPath });
  if (granted.length === 0) throw new UsageError({ what: "no folder is granted", expected: "--grant DIR:rw, or grants in [sandbox] of .agentbox/config.toml or ~/.agentbox/config.toml", fix: 'write --grant ".:rw" for the working directory' });
  const sessionId = session ?? makeSessionId();
  const queue = await openConfirmationQueue({ agentboxHome: host.agentboxHome, sessionId });
  try {
    const frontEnds = at === undefined ? [elicitation, bindQueue(queue)] : [bindQueue(queue)];
    const { grants: _grants, ...rules } = config;
    await using sandbox = new Sandbox({ sessionId, config: rules, source: (texts.project ?? texts.user)?.path, frontEnds, agentboxHome: host.agentboxHome });
    for (const granting of granted) sandbox.grant(granting);
    const guard = { sandbox, onBug: (error: unknown) => say(`this is a bug, please report it: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`), running: new Set<Promise<unknown>>() };
    const served: Served = { guard, config, version: readVersion(host.root), believesClient: at === undefined, say };
    say(`session ${sessionId}${at === undefined ? "" : ` on ${quotePath(at)}`}: ${granted.map(({ root }) => quotePath(root)).join(", ")}`);
    const code = at === undefined ? await serveStdio(served) : await serveSocket(at, served);
    // Taken back, they end by themselves; what they did has to be in the log before that is closed.
    await Promise.allSettled(guard.running);
    return code;
  } finally {
    queue.close();
  }
}

async function serveStdio(served: Served): Promise<number> {
  const connection = await openConnection({ input: process.stdin, output: process.stdout }, served);
  const signalled = await untilSignal(connection.closed);
  await connection.close();
  const ended = process.stdin.readableEnded;
  process.stdin.destroy();
  return signalled || ended ? 0 : BROKEN;
}

async function serveSocket(path: string, served: Served): Promise<number> {
  const open = new Set<Connection>();
  const accept = async (socket: Socket): Promise<void> => {
    const connection = await openConnection({ input: socket, output: socket }, served);
    const watch = setInterval(() => socket.writableLength > MAX_UNREAD && socket.destroy(), WATCH_MS);
    open.add(connection);
    await connection.closed;
    open.delete(connection);
    clearInterval(watch);
    socket.destroy();
  };
  const stop = await listenOnSocket(path, (socket) => void accept(socket).catch(served.guard.onBug));
  await untilSignal(new Promise(() => undefined));
  const stopped = stop();
  for (const connection of open) await connection.close();
  await stopped;
  return 0;
}

/** Waits for the end of the client, or for a signal; true for the latter. */
async function untilSignal(closed: Promise<void>): Promise<boolean> {
  const { promise, resolve: end } = Promise.withResolvers<boolean>();
  const onSignal = (): void => end(true);
  const signals = ["SIGTERM", "SIGINT", "SIGHUP"] as const;
  for (const signal of signals) process.once(signal, onSignal);
  void closed.then(() => end(false));
  const signalled = await promise;
  for (const signal of signals) process.off(signal, onSignal);
  return signalled;
}

/** The configuration that counts here. stdin is the protocol's, so nobody is asked: a project's file has to be trusted already. */
async function readTrusted(host: Host): Promise<SessionConfig> {
  const projectPath = findProject(host);
  // In the home directory the project's file would be the user's own, which needs no trust.
  const atHome = resolvePath(join(projectPath, ".agentbox")) === resolvePath(host.agentboxHome);
  const texts = atHome ? { project: undefined, user: readConfigText({ name: USER_CONFIG_NAME, path: join(host.agentboxHome, "config.toml") }), named: {} } : undefined;
  const config = await readConfig({ host, projectPath, texts });
  await requireTrust({ host, config, ask: undefined });
  return config;
}

function listConfigured({ grants = [] }: SandboxConfig, { host, projectPath }: { host: Host; projectPath: string }): Granting[] {
  return grants.flatMap(({ root, access, hidden, hard_links: hardLinks, trash, output }) => {
    const rights = parseAccess(access);
    return rights.ok ? [{ root: resolve(projectPath, expandTilde(root, host.home)), access: rights.value, hidden, hardLinks, trash, output }] : [];
  });
}

/** A box gets no file of AgentBox's own, so a socket there would serve nobody. */
function placeSocket({ cwd, home, agentboxHome }: Host, typed: string): string {
  const path = resolve(cwd, expandTilde(typed, home));
  if (!isWithin(path, agentboxHome)) return path;
  throw new UsageError({ what: `${quotePath(path)} lies in AgentBox's own directory, of which no box gets anything`, expected: "a place of its own", fix: "write --socket ~/agentbox-guard/guard.sock" });
}

function makeSessionId(): string {
  return `mcp-${new Date().toISOString().replaceAll(/[-:]|\.\d+Z/g, "")}-${process.pid}`;
}

function readVersion(root: string): string {
  const manifest: unknown = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return typeof manifest === "object" && manifest !== null && "version" in manifest ? String(manifest.version) : "unknown";
}
