import { type ChildProcess, spawn } from "node:child_process";
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { restartForever } from "../../../entrypoint/start-proxy.ts";
import { decisionRecordSchema, type DecisionRecord } from "../../../policy/decision-record.ts";
import { emptyDocument, type PolicyDocument } from "../../../policy/policy-document.ts";
import { KeeperPeer, type Surroundings } from "./keeper-peer.ts";

const MAIN = join(import.meta.dirname, "../../../proxy/main.ts");
const NODE = join(import.meta.dirname, "../../../node_modules/.bin/node");

/** Lists of an image that open nothing by themselves. */
const BARE_LISTS = { services: "ALLOWED_SERVICES=()\nCRITICAL_SERVICES=()\n", github: 'GITHUB_RANGES_DATE="2026-01-01"\nGITHUB_RANGES=()\n' };

/** A box that knows nobody. */
const BARE_SURROUNDINGS: Omit<Surroundings, "document"> = { lists: BARE_LISTS, hosts: {}, pins: {}, upstreams: [], engineResolver: null };

/** A document that allows these entries, in the grammar of allow_hosts. */
export function allowing(hosts: readonly string[], more: Partial<PolicyDocument> = {}): PolicyDocument {
  return {
    ...emptyDocument({ name: "shell", hosts: [], critical: null }),
    sources: [{ label: "config", surface: "list", words: hosts.map((text) => ({ text })) }],
    ...more,
  };
}

export type ResolverProcess = {
  port: number;
  keeper: KeeperPeer;
  dir: string;
  /** Process id of the resolver that runs now. */
  pid: () => number;
  readLog: () => DecisionRecord[];
  [Symbol.asyncDispose]: () => Promise<void>;
};

/**
 * Starts the real program on sockets that a loop of sh holds, as in a box: when it ends it is started again
 * on the same sockets. The keeper says yes until a test tells it otherwise.
 * `program` is the start of its argv.
 */
export async function startResolver(document: PolicyDocument, surroundings: Partial<Surroundings> = {}, program: readonly string[] = [NODE, MAIN]): Promise<ResolverProcess> {
  const dir = mkdtempSync(join(tmpdir(), "agentbox-proxy-"));
  const keeper = await KeeperPeer.listen(join(dir, "proxy.sock"), { ...BARE_SURROUNDINGS, document, ...surroundings });
  const { port, loop } = await startLoop(dir, program);
  await keeper.nextReport();
  const pid = (): number => Number(readFileSync(`/proc/${loop.pid}/task/${loop.pid}/children`, "utf8").trim().split(" ")[0]);
  return {
    port,
    keeper,
    dir,
    pid,
    readLog: () => readLog(dir),
    [Symbol.asyncDispose]: async () => {
      const last = pid();
      loop.kill("SIGKILL");
      await once(loop, "exit");
      process.kill(last, "SIGKILL");
      await keeper.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** All lines of the live log file. */
function readLog(dir: string): DecisionRecord[] {
  const text = readFileSync(join(dir, "decisions.jsonl"), "utf8");
  return text.split("\n").filter((line) => line !== "").map((line) => decisionRecordSchema.parse(JSON.parse(line)));
}

/** UDP and TCP on one port of loopback, of both families, inherited by the loop; this process lets go of them before anybody asks. */
async function startLoop(dir: string, program: readonly string[]): Promise<{ port: number; loop: ChildProcess }> {
  for (;;) {
    const sockets = await bindSockets();
    if (sockets === undefined) continue;
    const { port, udp4, udp6, tcp4, tcp6 } = sockets;
    const options = ["--udp4", "3", "--udp6", "4", "--tcp", "5", "--tcp", "6", "--keeper", join(dir, "proxy.sock"), "--log", dir];
    const all = [udp4, udp6, tcp4, tcp6];
    const [file = "", ...args] = restartForever([...program, ...options]);
    const loop = spawn(file, args, { stdio: ["ignore", "ignore", "inherit", ...all.map(descriptorOf)] });
    await once(loop, "spawn");
    for (const socket of all) socket.close();
    return { port, loop };
  }
}

type Sockets = { port: number; udp4: UdpSocket; udp6: UdpSocket; tcp4: Server; tcp6: Server };

/** Undefined where somebody else has the port on one of them. */
async function bindSockets(): Promise<Sockets | undefined> {
  const udp4 = createSocket("udp4").bind(0, "127.0.0.1");
  await once(udp4, "listening");
  const { port } = udp4.address();
  const sockets = { udp4, udp6: createSocket({ type: "udp6", ipv6Only: true }), tcp4: createServer(), tcp6: createServer() };
  const { udp6, tcp4, tcp6 } = sockets;
  const listening = [udp6, tcp4, tcp6].map((socket) => once(socket, "listening").then(() => true, () => false));
  udp6.bind(port, "::1");
  tcp4.listen(port, "127.0.0.1");
  tcp6.listen(port, "::1");
  const bound = await Promise.all(listening);
  if (bound.every(Boolean)) return { port, ...sockets };
  udp4.close();
  [udp6, tcp4, tcp6].forEach((socket, index) => bound[index] === true && socket.close());
  return undefined;
}

const withDescriptor = z.object({ _handle: z.object({ fd: z.int().min(0) }) });

/** Node tells no descriptor of a socket; its handle has it. */
function descriptorOf(socket: unknown): number {
  return withDescriptor.parse(socket)._handle.fd;
}
