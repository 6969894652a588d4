import { readFileSync } from "node:fs";
import { type BoxSpec, CA_BUNDLE_PATH } from "../policy/box-spec.ts";
import type { BoxPolicy } from "../policy/box-policy.ts";
import { ResolveError } from "../policy/errors.ts";
import { actAs } from "./act-as.ts";
import { chooseProbe } from "../policy/probe.ts";
import { requireNameWall, requireUnknown, requireWalls } from "./canary.ts";
import { reachService } from "./service-probe.ts";

const CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt";

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
    const opens = box?.enforcement === "name" && box.nameWall.intercept;
    // Where TLS is opened, services show certificates of the session's authority.
    const ca = critical.length === 0 ? Buffer.alloc(0) : readFileSync(opens ? CA_BUNDLE_PATH : CA_BUNDLE);
    const services = Promise.allSettled(
      critical.map((service) => reachService({ service, addresses: reachable.get(service.name) ?? [], ca, intercepted: opens && !box.passesThrough({ kind: "name", name: service.name }) })),
    );
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

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
