import { createSocket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import { connect } from "node:net";
import { connect as connectTls } from "node:tls";
import { RESOLVER_ADDRESSES } from "../policy/box-spec.ts";
import { FirewallError } from "../policy/errors.ts";
import { ADDRESS_PROBES, nameWebProbe, PROBE_TYPE } from "../policy/probe.ts";

const CANARY_LIMIT_MS = 1000;

const CANARIES = ADDRESS_PROBES.map((host) => ({ host, port: 9 }));
const FOREIGN_RESOLVER = { host: ADDRESS_PROBES[0], port: 53 };

/** The answers of connect(2) and send(2) that mean "not let out": refused by a rule, or no way there at all. */
const REFUSALS = ["ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "EACCES", "EPERM", "EADDRNOTAVAIL", "EAFNOSUPPORT"];

/** Throws FirewallError unless the canaries and a foreign resolver are refused at once. */
export async function requireWalls(): Promise<void> {
  await Promise.all([...CANARIES, FOREIGN_RESOLVER].map(requireRefused).concat(requireUdpRefused(FOREIGN_RESOLVER)));
}

/** Throws FirewallError unless the box's own resolver says that the name does not exist. */
export async function requireUnknown(name: string): Promise<void> {
  const outcome = await lookUp(name);
  if (outcome !== "ENOTFOUND") throw new FirewallError({ what: `the name ${name}, which is not allowed, ${outcome}`, expected: "a name that does not exist", fix: FIX });
}

/**
 * Throws FirewallError unless the box's proxy reads the names in TLS hellos, whatever address they go to, and refuses one that is
 * not allowed: over each family that has a way out. A reset is no proof of that, only of a closed port.
 */
export async function requireNameWall(name: string): Promise<void> {
  await Promise.all(ADDRESS_PROBES.map((host) => requireNameRefused({ host, port: 443 }, nameWebProbe(name))));
}

const FIX = "the firewall does not hold in this namespace; run agentbox doctor";

async function lookUp(name: string): Promise<string> {
  const resolver = new Resolver({ timeout: CANARY_LIMIT_MS, tries: 2 });
  resolver.setServers([RESOLVER_ADDRESSES[4]]);
  return resolver.resolve(name, PROBE_TYPE).then(
    () => "exists",
    (error: unknown) => {
      const code = codeOf(error);
      return code === "ENOTFOUND" ? code : `could not be asked for (${code})`;
    },
  );
}

type Canary = { host: string; port: number };

function requireRefused({ host, port }: Canary): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    const judge = makeJudge({ host, port }, () => socket.destroy(), resolve, reject);
    socket.setTimeout(CANARY_LIMIT_MS, () => judge("was neither refused nor reached in time"));
    socket.once("connect", () => judge("can be reached"));
    socket.once("error", (error) => judge(error));
  });
}

/** How Node calls the alert by which the proxy refuses (RFC 8446, section 6.2: access_denied). */
const DENIED_BY_PROXY = "ERR_SSL_TLSV1_ALERT_ACCESS_DENIED";
const NO_WAY = ["ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL", "EAFNOSUPPORT"];
/** The proxy has just begun to serve. */
const NAME_LIMIT_MS = 5000;

function requireNameRefused({ host, port }: Canary, servername: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ host, port, servername });
    const judge = (outcome: Error | string): void => {
      socket.destroy();
      if (typeof outcome !== "string" && [DENIED_BY_PROXY, ...NO_WAY].includes(codeOf(outcome))) return resolve();
      const what = typeof outcome === "string" ? outcome : `met ${codeOf(outcome)}`;
      reject(new FirewallError({ what: `the name ${servername}, told to ${host} port ${port}, ${what}`, expected: "a refusal by the box's proxy", fix: FIX }));
    };
    socket.setTimeout(NAME_LIMIT_MS, () => judge("was neither refused nor let through in time"));
    socket.once("secureConnect", () => judge("was let through"));
    socket.once("error", judge);
  });
}

function requireUdpRefused({ host, port }: Canary): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createSocket("udp4");
    const timer = setTimeout(() => judge("was not refused a datagram"), CANARY_LIMIT_MS);
    const judge = makeJudge(
      { host, port },
      () => {
        clearTimeout(timer);
        socket.close();
      },
      resolve,
      reject,
    );
    socket.once("error", (error) => judge(error));
    socket.connect(port, host, (error?: Error) => {
      // Without a network there is no way there in the first place.
      if (error !== undefined) return judge(error);
      socket.send("agentbox", (failure) => failure !== null && judge(failure));
    });
  });
}

/** Settles once: an error that means a refusal is what is wanted, everything else is a hole. */
function makeJudge({ host, port }: Canary, close: () => void, resolve: () => void, reject: (error: Error) => void): (outcome: Error | string) => void {
  let settled = false;
  return (outcome) => {
    if (settled) return;
    settled = true;
    close();
    if (typeof outcome !== "string" && REFUSALS.includes(codeOf(outcome))) return resolve();
    const what = typeof outcome === "string" ? outcome : `answered ${codeOf(outcome)}`;
    reject(new FirewallError({ what: `the canary ${host} port ${port} ${what}`, expected: "a refusal at once", fix: FIX }));
  };
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return "code" in error ? String(error.code) : error.message;
}
