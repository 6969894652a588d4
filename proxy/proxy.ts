import { KnownError } from "../policy/errors.ts";
import { BoxWeb, type WebOptions } from "./box-web.ts";
import { AnswerCache } from "./dns/answer-cache.ts";
import { serveDatagrams } from "./dns/datagram-listener.ts";
import { DecisionLog } from "./log/decision-log.ts";
import { KeeperLink, type KeeperNews } from "./keeper-link.ts";
import { readKeeperEntry } from "./keeper-record.ts";
import { buildLivePolicy, type PolicyMessage } from "./live-policy.ts";
import { LogFile } from "./log/log-file.ts";
import { PendingFile } from "./log/pending-file.ts";
import { NameServer } from "./dns/name-server.ts";
import { PrivateNames } from "./dns/private-names.ts";
import { Resolver } from "./dns/resolver.ts";
import { serveStreams } from "./dns/stream-listener.ts";
import { UpstreamPool } from "./dns/upstream-pool.ts";

export type ProxyOptions = {
  /** Inherited sockets: bound for UDP, listening for TCP. */
  datagrams: readonly { fd: number; family: 4 | 6 }[];
  streams: readonly { fd: number }[];
  /** Undefined where addresses alone decide. */
  web: WebOptions | undefined;
  keeperSocket: string;
  logDir: string;
  /** Where upstream resolvers listen; 53 but in tests. */
  upstreamPort: number;
  /** Called once when the proxy cannot go on, with the reason. */
  onEnd: (why: string) => void;
};

/** setTimeout takes no more, and would fire at once. */
const MAX_TIMER_MS = 2_147_483_647;

/** Starts the resolver: listens, joins the keeper, and serves as soon as the first policy is built. Until then every answer is SERVFAIL. */
export async function startProxy(options: ProxyOptions): Promise<void> {
  const log = new DecisionLog(new LogFile(options.logDir), { onHealth: () => tellHealth(), pending: new PendingFile(options.logDir) });
  const pool = new UpstreamPool(options.upstreamPort, ({ event, detail }) => {
    log.write({ kind: "event", event, detail, added: [], removed: [] });
    tellHealth();
  });
  const link = new KeeperLink(options.keeperSocket, take, end);
  const privateNames = new PrivateNames({ pool, pin: (name, addresses) => link.ask({ op: "pin", name, addresses: [...addresses] }) });
  const cache = new AnswerCache();
  const resolver = new Resolver({ cache, log, pool, privateNames, learn: (name, addresses) => link.ask({ op: "learn", name, addresses: [...addresses] }) });
  const server = new NameServer({ log, cache, resolver });
  const web = options.web === undefined ? undefined : new BoxWeb({ resolver, cache, log, options: options.web });
  let policies = Promise.resolve();
  let expiry: NodeJS.Timeout | undefined;

  function end(why: string): void {
    log.close();
    options.onEnd(why);
  }

  function take(news: KeeperNews): void {
    if (news.op === "policy") {
      // One after the other: the last that was sent is the one that stays.
      policies = policies.then(() => replace(news)).catch((error: unknown) => end(String(error)));
      return;
    }
    const entry = readKeeperEntry(news.entry);
    // The log has its session from the policy that was sent before.
    if (entry !== undefined) policies = policies.then(() => log.write(entry));
  }

  /** All or nothing: the policy before serves until the new one is built. */
  async function replace(message: PolicyMessage): Promise<void> {
    try {
      const live = await buildLivePolicy(message, Date.now());
      log.start(message.session);
      server.replace(live);
      await web?.replace(live);
      clearTimeout(expiry);
      if (live.box.nextExpiry !== undefined) {
        // When the time of a word is over, the same document makes another policy.
        expiry = setTimeout(() => take(message), Math.min(live.box.nextExpiry - Date.now() + 1, MAX_TIMER_MS));
      }
      link.send({ op: "policy", version: message.version, ok: true, detail: "" });
    } catch (error) {
      if (!(error instanceof KnownError)) throw error;
      link.send({ op: "policy", version: message.version, ok: false, detail: error.message });
    }
  }

  let told = "";
  function tellHealth(): void {
    const degraded = pool.failing().map((address) => `the upstream resolver ${address} does not answer`);
    if (log.failing !== undefined) degraded.push(log.failing);
    if (degraded.join("\n") === told) return;
    told = degraded.join("\n");
    link.send({ op: "health", degraded });
  }

  await Promise.all([...options.datagrams.map((socket) => serveDatagrams(server, socket)), ...options.streams.map((socket) => serveStreams(server, socket))]);
}
