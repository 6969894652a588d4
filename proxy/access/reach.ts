import type { Connection } from "../net/connection.ts";
import type { Access, Admitted, Failure, Outcome } from "./access.ts";
import type { Dialler } from "./dial.ts";
import type { Asked } from "./judgement.ts";

/** An open way to a place that the policy in force lets through; or why there is none. */
export type Reached = { ok: true; admitted: Admitted; upstream: Connection } | Extract<Outcome, { denial: object }> | (Failure & { code?: string });

/** Judges what a client wants, and connects to it. A policy that comes into force meanwhile judges it anew. */
export async function reach({ access, dialler }: { access: Access; dialler: Dialler }, asked: Asked): Promise<Reached> {
  for (;;) {
    const judged = access.admit(asked);
    const outcome = judged instanceof Promise ? await judged : judged;
    if (!outcome.ok) return outcome;
    const dialled = await dialler.dial(outcome, access.policy.upstream);
    if (!dialled.ok) return dialled;
    if (access.policy.epoch === outcome.epoch) return { ok: true, admitted: outcome, upstream: dialled.connection };
    dialled.connection.destroy();
  }
}
