import { readFileSync } from "node:fs";
import { connect, type LookupFunction } from "node:net";
import { connect as connectTls } from "node:tls";
import type { BoxSpec } from "../policy/box-spec.ts";
import type { CriticalService } from "../policy/critical-service.ts";
import { FirewallError, ResolveError } from "../policy/errors.ts";
import { actAs } from "./act-as.ts";

const CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt";
const SERVICE_LIMIT_MS = 10_000;
const CANARY_LIMIT_MS = 1000;

// Documentation addresses (RFC 5737, RFC 3849): nobody's, so nobody is bothered should the wall be down.
const CANARIES = [
  { host: "198.51.100.1", port: 9 },
  { host: "2001:db8::1", port: 9 },
];

/** The answers of connect(2) that mean "not let out": refused by a rule, or no way there at all. */
const REFUSALS = ["ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "EACCES", "EADDRNOTAVAIL", "EAFNOSUPPORT"];

export type ValidateInput = {
  user: Pick<BoxSpec["user"], "uid" | "gid">;
  critical: readonly CriticalService[];
  /** The addresses of each name that were opened. */
  reachable: ReadonlyMap<string, readonly string[]>;
};

/**
 * Proves from inside, as the agent's uid, that the critical services answer and that the canaries are
 * refused at once; all side by side. A time-out never counts as a refusal.
 *
 * Errors: FirewallError when a canary is not refused, ResolveError naming each service that does not answer.
 */
export async function validateReach({ user, critical, reachable }: ValidateInput): Promise<void> {
  await actAs(user, async () => {
    const ca = readFileSync(CA_BUNDLE);
    const services = Promise.allSettled(critical.map((service) => reachService(service, reachable.get(service.name) ?? [], ca)));
    await Promise.all(CANARIES.map(requireRefused));
    const failures = (await services).flatMap((result) => (result.status === "rejected" ? [describe(result.reason)] : []));
    if (failures.length === 0) return;
    throw new ResolveError(
      failures.map((what) => ({
        what,
        expected: "every critical service to answer",
        fix: "check the network, or take the name out of CRITICAL_SERVICES in allowlists/services.sh and run agentbox --rebuild",
      })),
    );
  });
}

/** TCP and TLS with a verified certificate; whatever HTTP would answer does not matter. */
function reachService({ name, port }: CriticalService, addresses: readonly string[], ca: Buffer): Promise<void> {
  const lookup: LookupFunction = (_host, _options, callback) =>
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    );
  return new Promise((resolve, reject) => {
    const socket = connectTls({ host: name, port, servername: name, lookup, ca });
    socket.setTimeout(SERVICE_LIMIT_MS, () => socket.destroy(new Error(`no answer within ${SERVICE_LIMIT_MS / 1000} s`)));
    socket.once("error", (error) => reject(new Error(`${name}:${port} does not answer: ${explain(error)}`, { cause: error })));
    socket.once("secureConnect", () => {
      socket.destroy();
      resolve();
    });
  });
}

const UNTRUSTED = new Set([
  "SELF_SIGNED_CERT_IN_CHAIN",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

function explain(error: Error): string {
  const code = "code" in error ? String(error.code) : "";
  if (UNTRUSTED.has(code)) return `its certificate is not trusted (${code}); behind an inspecting gateway give its CA with --ca-file`;
  if (error instanceof AggregateError) return error.errors.map(describe).join(", ");
  return error.message;
}

function requireRefused({ host, port }: { host: string; port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    const refuse = (what: string): void => {
      socket.destroy();
      reject(
        new FirewallError({
          what: `the canary ${host} port ${port} ${what}`,
          expected: "a refusal at once",
          fix: "the firewall does not hold in this namespace; run agentbox doctor",
        }),
      );
    };
    socket.setTimeout(CANARY_LIMIT_MS, () => refuse("was neither refused nor reached in time"));
    socket.once("connect", () => refuse("can be reached"));
    socket.once("error", (error) => {
      const code = "code" in error ? String(error.code) : error.message;
      if (REFUSALS.includes(code)) resolve();
      else refuse(`answered ${code}`);
    });
  });
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
