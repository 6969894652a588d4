import type { BoxSpec } from "../policy/box-spec.ts";
import { NAME_PROBES } from "../policy/probe.ts";
import { requireMounts, StepError } from "./boot.ts";
import { describeProof } from "./report.ts";
import { requireNameWall, requireUnknown, requireWalls } from "./canary.ts";
import type { Log } from "./log.ts";

/**
 * The start of the agent's container in the sidecar topology, which has no capability: it proves that the
 * namespace it joined has the walls. A holder that was started again leaves an open one.
 */
export async function passGate(spec: BoxSpec, log: Log): Promise<void> {
  await requireMounts(spec);
  log({ event: "start", step: "gate" });
  const { probe = NAME_PROBES[0] } = spec;
  const foreign = spec.mode === "none" || spec.policy.report ? null : (probe ?? null);
  try {
    const judges = spec.policy.enforcement === "name";
    await Promise.all([requireWalls(), ...(foreign === null ? [] : [requireUnknown(foreign), ...(judges ? [requireNameWall(foreign)] : [])])]);
  } catch (error) {
    throw new StepError("gate", error);
  }
  const ms = Math.round(performance.now());
  log({ event: "done", step: "gate", ms, detail: describeProof(0, foreign !== null) });
  const text = spec.policy.report ? "REPORT MODE: the firewall container lets through what is public and no rule denies, and writes it down; its closed addresses are refused" : "firewall on: the walls of the firewall container hold";
  log({ event: "ready", text: `${text}; verified`, ms });
}
