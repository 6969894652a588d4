import { readFileSync } from "node:fs";
import type { LookupFunction } from "node:net";
import { connect as connectTls } from "node:tls";
import { type BoxSpec, CA_BUNDLE_PATH } from "../policy/box-spec.ts";
import type { CriticalService } from "../policy/critical-service.ts";
import type { BoxPolicy } from "../policy/box-policy.ts";
import { ResolveError } from "../policy/errors.ts";
import { actAs } from "./act-as.ts";
import { chooseProbe } from "../policy/probe.ts";
import { requireNameWall, requireUnknown, requireWalls } from "./canary.ts";

const CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt";
const SERVICE_LIMIT_MS = 10_000;
export type ValidateInput = {
  user: Pick<BoxSpec["user"], "uid" | "gid">;
  /** Undefined where nothing can be reached and nobody resolves. */
  box: BoxPolicy | undefined;
  /** The addresses of each name that were opened. */
  reachable: ReadonlyMap<string, readonly string[]>;
};

/**
 * Proves from inside, as the agent's uid, that the critical services answer, that a name which is not allowed
 * does not exist at the box's resolver and is refused by its proxy, and that canaries and a foreign resolver are
 * refused at once; all side by side. A time-out never counts as a refusal.
 *
 * Errors: FirewallError when a wall does not hold, ResolveError naming each service that does not answer.
 */
export async function validateReach({ user, box, reachable }: ValidateInput): Promise<void> {
  await actAs(user, async () => {
    const critical = box?.list.critical ?? [];
    const ca = critical.length === 0 ? Buffer.alloc(0) : readFileSync(chooseBundle(box));
    const services = Promise.allSettled(critical.map((service) => reachService(service, reachable.get(service.name) ?? [], ca)));
    // In report mode a foreign name is answered; that is what it is for.
    const foreign = box === undefined || box.report ? undefined : chooseProbe(box.policy);
    const judges = box?.enforcement === "name";
    await Promise.all([requireWalls(), ...(foreign === undefined ? [] : [requireUnknown(foreign), ...(judges ? [requireNameWall(foreign)] : [])])]);
    const failures = (await services).flatMap((result) => (result.status === "rejected" ? [describe(result.reason)] : []));
    if (failures.length === 0) return;
    throw new ResolveError(
      failures.map((what) => ({
        what,
        expected: "every critical service to answer",
        fix: "check the network, or take the name out of the critical services (network.critical, or CRITICAL_SERVICES in allowlists/services.sh)",
      })),
    );
  });
}

/** Where TLS is opened, services show certificates of the session's authority. */
function chooseBundle(box: BoxPolicy | undefined): string {
  return box?.enforcement === "name" && box.nameWall.intercept ? CA_BUNDLE_PATH : CA_BUNDLE;
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
  if (code === "ERR_SSL_TLSV1_ALERT_ACCESS_DENIED") return 'the box\'s own proxy refuses it (mode = "limited" reaches TLS with mitm.enabled only)';
  if (error instanceof AggregateError) return error.errors.map(describe).join(", ");
  return error.message;
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
