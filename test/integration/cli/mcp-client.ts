import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, type ElicitRequest, type ElicitResult } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { waitingSchema } from "../../../cli/commands/confirm.ts";

export const PROGRAM = path.join(import.meta.dirname, "../../../build/cli.mjs");

/** Directories of one test: a home, a folder to grant, and what lies outside. */
export type Place = { home: string; folder: string; outside: string; env: Record<string, string>; remove: () => void };

export function makePlace(): Place {
  const root = realpathSync(mkdtempSync(path.join(tmpdir(), "agentbox mcp ")));
  const [home, folder, outside] = [path.join(root, "home"), path.join(root, "work"), path.join(root, "outside")];
  for (const directory of [home, folder, outside]) mkdirSync(directory);
  mkdirSync(path.join(home, ".agentbox"), { mode: 0o700 });
  writeFileSync(path.join(outside, "canary"), "canary");
  return { home, folder, outside, env: { HOME: home, PATH: process.env["PATH"] ?? "" }, remove: () => rmSync(root, { recursive: true, force: true }) };
}

export type Answering = (request: ElicitRequest) => ElicitResult | Promise<ElicitResult>;

export type Told = { stderr: string };

/** Starts a server and a client of the public SDK on it; without `answer` the client knows no forms. `told` collects what the server says. */
export async function connect(place: Place, argv: readonly string[], { answer, told }: { answer?: Answering | undefined; told?: Told } = {}): Promise<Client> {
  const transport = new StdioClientTransport({ command: process.execPath, args: [PROGRAM, "mcp", ...argv], env: place.env, cwd: place.folder, stderr: "pipe" });
  transport.stderr?.on("data", (chunk: Buffer) => {
    if (told !== undefined) told.stderr += chunk.toString();
  });
  return await attach(transport, answer);
}

export async function attach(transport: Parameters<Client["connect"]>[0], answer?: Answering): Promise<Client> {
  const client = new Client({ name: "test", version: "1" }, { capabilities: answer === undefined ? {} : { elicitation: {} } });
  if (answer !== undefined) client.setRequestHandler("elicitation/create", answer);
  await client.connect(transport);
  return client;
}

/** Text, data and whether it is a refusal. */
export type Result = { text: string; data: Record<string, unknown>; isError: boolean };

export async function call(client: Client, name: string, args: Record<string, unknown> = {}, options?: Parameters<Client["callTool"]>[1]): Promise<Result> {
  const { content, structuredContent, isError } = await client.callTool({ name, arguments: args }, options);
  const [first] = content;
  const data = typeof structuredContent === "object" && structuredContent !== null ? { ...structuredContent } : {};
  return { text: first?.type === "text" ? first.text : "", data, isError: isError === true };
}

/** A server without a client: its two streams as they are. */
export function start(place: Place, argv: readonly string[]): { child: ChildProcessWithoutNullStreams; out: () => string; err: () => string; closed: Promise<number | null> } {
  const child = spawn(process.execPath, [PROGRAM, "mcp", ...argv], { cwd: place.folder, env: place.env });
  let [out, err] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  child.stdin.on("error", () => undefined);
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
  return { child, out: () => out, err: () => err, closed };
}

export async function until<T>(find: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> {
  for (;;) {
    const found = await find();
    if (found !== undefined && found !== false) return found;
    await sleep(20);
  }
}

/** Runs `agentbox` and returns what it printed. */
export async function run(place: Place, argv: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [PROGRAM, ...argv], { cwd: place.folder, env: place.env, stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
  await new Promise((resolve) => child.once("close", resolve));
  return text;
}

/** The ids of what waits in the queues. */
export async function listWaiting(place: Place): Promise<string[]> {
  return waitingSchema.parse(JSON.parse(await run(place, ["confirm", "list", "--json"]))).prompts.flatMap(({ id, stale }) => (stale ? [] : [id]));
}
