import { UsageError } from "../../policy/errors.ts";
import { isReservedUid, KEEPER_IDS } from "../../policy/reserved-ids.ts";
import type { Topology } from "../args-values.ts";
import type { EngineTraits } from "../engine/container-plan.ts";
import type { Host } from "../host.ts";
import type { NetworkDecision } from "./firewall-switch.ts";

type Ids = { uid: number; gid: number };

/** Chooses the ids of the agent. With a rootless Docker the host's user is the box's root, and every other id there belongs to nobody. */
export function chooseUser({ user }: Pick<Host, "user">, engine: Pick<EngineTraits, "kind" | "rootless">): Ids {
  return engine.kind === "docker" && engine.rootless ? { uid: 0, gid: 0 } : user;
}

/** Throws UsageError for ids of a program of the box: an agent with them could speak as that program, or enter its directory. */
export function requireUsualIds({ uid, gid }: Ids): void {
  if (!isReservedUid(uid) && gid !== KEEPER_IDS.gid) return;
  throw new UsageError({ what: `your ids ${uid}:${gid} are those of the box's own programs`, expected: "a user other than 64990 and 64991, and another group than 64990", fix: "run agentbox as another user" });
}

export type TopologyInput = {
  network: Pick<NetworkDecision, "firewall">;
  boxUser: Ids;
  admin: boolean;
  typed: Topology | undefined;
  configured: Topology | undefined;
};

/**
 * Chooses how many containers a box has. An agent that is uid 0 never shares one with the keeper: what root's
 * programs there execute or read, it could take for its own.
 */
export function chooseTopology({ network, boxUser, admin, typed, configured }: TopologyInput): Topology {
  if (!network.firewall) return "container";
  if (boxUser.uid !== 0) return typed ?? configured ?? "container";
  if (typed === "container") {
    const who = admin ? "shell --admin is root in its box" : "you are root in the box";
    throw new UsageError({ what: `${who}, which one container with the firewall's programs cannot have`, expected: "--topology sidecar", fix: "leave --topology out" });
  }
  return "sidecar";
}
