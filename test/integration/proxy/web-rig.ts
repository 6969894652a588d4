import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import type { AddressInfo, Server } from "node:net";
import { tmpdir } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { parseAddress, parseRange } from "../../../policy/address.ts";
import { type DecisionRecord, DECISION_LOG_FILE, decisionRecordSchema } from "../../../policy/decision-record.ts";
import { buildEffectiveList } from "../../../policy/effective-list.ts";
import { buildPolicy, type Policy } from "../../../policy/policy.ts";
import { isPublicSuffix } from "../../../policy/public-suffix.ts";
import type { AccessPolicy } from "../../../proxy/access/access-policy.ts";
import { Access } from "../../../proxy/access/access.ts";
import { Dialler } from "../../../proxy/access/dial.ts";
import { Flows } from "../../../proxy/access/flows.ts";
import { DecisionLog } from "../../../proxy/log/decision-log.ts";
import { LogFile } from "../../../proxy/log/log-file.ts";
import { type Connection, listenFor } from "../../../proxy/net/connection.ts";
import type { WebContext } from "../../../proxy/web-context.ts";

type Parts = Partial<Pick<WebContext, "openTunnel" | "serveInside" | "intercept">>;

export type RigOptions = {
  /** Entries of an allowlist and of a blocklist. */
  allow: readonly string[];
  block?: readonly string[];
  /** Where names lead; a name that is not here does not exist. */
  hosts?: Readonly<Record<string, readonly string[]>>;
  /** Names are found in a later turn, as by a resolver that has to ask. */
  resolvesLate?: boolean;
  settings?: Partial<AccessPolicy>;
  methods?: Policy["methods"];
  /** Special addresses that names may lead to; the rig's servers are on loopback. */
  allowPrivate?: readonly string[];
  /** The protocols under test; one that is not given must not be reached. */
  parts: Parts | ((context: WebContext) => Parts);
  /** What every accepted connection is handed to. */
  serve: (connection: Connection, context: WebContext) => void;
};

/** The gate, the log and one listener of a proxy, in this process, with real sockets. */
export type Rig = AsyncDisposable & { port: number; context: WebContext; asked: readonly string[]; readLog: () => DecisionRecord[]; replace: (options: Pick<RigOptions, "allow" | "block" | "methods" | "settings" | "allowPrivate">) => void };

let epochs = 0;

export function makeAccessPolicy({ allow, block = [], methods = "full", settings = {}, allowPrivate = ["127.0.0.0/8", "::1/128"] }: Pick<RigOptions, "allow" | "block" | "methods" | "settings" | "allowPrivate">): AccessPolicy {
  const list = buildEffectiveList({ sources: [{ label: "test", surface: "list", words: allow.map((text) => ({ text })) }], blocks: [{ label: "blocks", words: block.map((text) => ({ text })) }], critical: [], isPublicSuffix });
  const ranges = allowPrivate.map((text) => unwrap(parseRange(text)));
  epochs += 1;
  const policy = buildPolicy({ blocks: list.blocks, list: list.entries, allowPrivate: ranges, methods });
  return { epoch: epochs, enabled: true, policy, report: false, intercept: false, passesThrough: () => false, refuseEch: false, inspect: false, maxBodyBytes: 4096, upstream: undefined, ...settings };
}

export async function startRig(options: RigOptions): Promise<Rig> {
  const dir = mkdtempSync(`${tmpdir()}/agentbox-rig-`);
  const log = new DecisionLog(new LogFile(dir));
  log.start("rig");
  const asked: string[] = [];
  const lookup = (name: string) => {
    asked.push(name);
    const addresses = options.hosts?.[name];
    const found = addresses === undefined ? { ok: false as const, why: "the name does not exist" } : { ok: true as const, addresses: addresses.map((text) => unwrap(parseAddress(text))), freshUntil: Date.now() + 60_000 };
    return options.resolvesLate === true ? sleep(50).then(() => found) : found;
  };
  const access = new Access({ policy: makeAccessPolicy(options), lookup, log });
  const flows = new Flows(access);
  const context: WebContext = { access, flows, dialler: new Dialler({ lookup }), openTunnel: unreachable("openTunnel"), serveInside: unreachable("serveInside"), intercept: unreachable("intercept") };
  Object.assign(context, typeof options.parts === "function" ? options.parts(context) : options.parts);
  const connections = new Set<Connection>();
  const server: Server = await listenFor({ host: "127.0.0.1", port: 0 }, (connection) => {
    connections.add(connection);
    connection.socket.once("close", () => connections.delete(connection));
    options.serve(connection, context);
  });
  const where = server.address();
  if (!isInfo(where)) throw new Error("no port");
  const readLog = (): DecisionRecord[] =>
    readFileSync(`${dir}/${DECISION_LOG_FILE}`, "utf8").trimEnd().split("\n").filter((line) => line !== "").map((line) => decisionRecordSchema.parse(JSON.parse(line)));
  return {
    port: where.port,
    context,
    asked,
    readLog,
    replace: (next) => {
      access.replace(makeAccessPolicy({ ...options, ...next }));
      flows.judgeAnew();
    },
    [Symbol.asyncDispose]: () => {
      for (const connection of connections) connection.destroy();
      server.close();
      log.close();
      rmSync(dir, { recursive: true, force: true });
      return Promise.resolve();
    },
  };
}

function unreachable(what: string): (client: Connection) => void {
  return (client) => {
    client.destroy();
    throw new Error(`${what} is not part of this rig`);
  };
}

function unwrap<T>(result: { ok: true; value: T } | { ok: false; complaint: { what: string } }): T {
  if (!result.ok) throw new Error(result.complaint.what);
  return result.value;
}

function isInfo(where: string | AddressInfo | null): where is AddressInfo {
  return typeof where === "object" && where !== null;
}
