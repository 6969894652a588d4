import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { type DecisionRecord, decisionRecordSchema } from "../../../../policy/decision-record.ts";
import { emptyDocument, type PolicyDocument } from "../../../../policy/policy-document.ts";
import { PROXY_SECRETS_FILE, type ProxySecrets } from "../../../../policy/proxy-secrets.ts";
import { KeeperPeer, type Surroundings } from "../keeper-peer.ts";

const MAIN = join(import.meta.dirname, "../../../../proxy/main.ts");
const NODE = join(import.meta.dirname, "../../../../node_modules/.bin/node");
const LISTS = { services: "ALLOWED_SERVICES=()\nCRITICAL_SERVICES=()\n", github: 'GITHUB_RANGES_DATE="2026-01-01"\nGITHUB_RANGES=()\n' };

/** Ports of the listeners of a box's proxy. */
type Ports = Record<"http" | "socks" | "web" | "tls", number>;

export type BoxWebProcess = AsyncDisposable & { ports: Ports; keeper: KeeperPeer; dir: string; readLog: () => DecisionRecord[] };

/** A policy of a box whose names may lead to loopback, where the servers of a test are. */
export function allowing(hosts: readonly string[], more: Partial<PolicyDocument> = {}): PolicyDocument {
  return {
    ...emptyDocument({ name: "shell", hosts: [], critical: null }),
    sources: [{ label: "config", surface: "list", words: hosts.map((text) => ({ text })) }],
    allowPrivate: [{ text: "127.0.0.0/8" }, { text: "::1/128" }],
    ...more,
  };
}

type Start = { document: PolicyDocument; upstreams?: readonly string[]; hosts?: Surroundings["hosts"]; secrets?: Partial<ProxySecrets>; siteProxy?: readonly string[]; /** An authority that the machine trusts beside its own. */ siteCa?: string };

/** Starts the program of a box on inherited sockets, with its resolver and its web, and a keeper that says yes. */
export async function startBoxWeb({ document, upstreams = [], hosts = {}, secrets = {}, siteProxy = [], siteCa }: Start): Promise<BoxWebProcess> {
  const dir = mkdtempSync(join(tmpdir(), "agentbox-box-web-"));
  const keeper = await KeeperPeer.listen(join(dir, "proxy.sock"), { lists: LISTS, hosts, upstreams: [...upstreams], engineResolver: null, pins: {}, document });
  const secretsFile = join(dir, PROXY_SECRETS_FILE);
  writeFileSync(secretsFile, JSON.stringify({ version: 1, authority: null, upstream: null, ...secrets }), { mode: 0o600 });
  const udp = createSocket("udp4").bind(0, "127.0.0.1");
  await once(udp, "listening");
  const names = ["http", "socks", "web", "tls"] as const;
  const listening = names.map((name) => ({ name, server: createServer().listen(0, "127.0.0.1") }));
  await Promise.all(listening.map(({ server }) => once(server, "listening")));
  const options = listening.flatMap(({ name }, index) => [`--${name}`, String(4 + index)]);
  const child = spawn(NODE, [MAIN, "--udp4", "3", ...options, "--keeper", join(dir, "proxy.sock"), "--log", dir, "--secrets", secretsFile, ...siteProxy.flatMap((address) => ["--site-proxy", address])], {
    env: siteCa === undefined ? {} : { SSL_CERT_FILE: writeText(join(dir, "site-ca.pem"), siteCa) },
    stdio: ["ignore", "ignore", "inherit", ...[udp, ...listening.map(({ server }) => server)].map(descriptorOf)],
  });
  await keeper.nextReport();
  const ports = Object.fromEntries(listening.map(({ name, server }) => [name, portOf(server.address())]));
  udp.close();
  for (const { server } of listening) server.close();
  return {
    ports: portsSchema.parse(ports),
    keeper,
    dir,
    readLog: () => readFileSync(join(dir, "decisions.jsonl"), "utf8").split("\n").filter((line) => line !== "").map((line) => decisionRecordSchema.parse(JSON.parse(line))),
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await once(child, "exit");
      await keeper.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function writeText(file: string, text: string): string {
  writeFileSync(file, text);
  return file;
}

const portsSchema = z.strictObject({ http: z.int(), socks: z.int(), web: z.int(), tls: z.int() });
const withDescriptor = z.object({ _handle: z.object({ fd: z.int().min(0) }) });

/** Node tells no descriptor of a socket; its handle has it. */
function descriptorOf(socket: unknown): number {
  return withDescriptor.parse(socket)._handle.fd;
}

function portOf(where: unknown): number {
  return z.looseObject({ port: z.int() }).parse(where).port;
}
