import { EngineError } from "../../policy/errors.ts";
import { findLiveBoxes, type LiveBox } from "../config/live-change.ts";
import type { Host } from "../host.ts";
import { sendControl } from "../session/control.ts";
import { readEnforced } from "../session/enforced-policy.ts";

/** Asks the keepers of a project's running boxes what troubles them; one sentence each. */
export async function describeHealth(host: Host, project: string): Promise<string[]> {
  // Whoever only looks needs no engine; that one is missing is said where it matters.
  const boxes = await findLiveBoxes(host, project, undefined).catch((error: unknown) => {
    if (error instanceof EngineError) return [];
    throw error;
  });
  return (await Promise.all(boxes.map(askHealth))).flat();
}

async function askHealth(box: LiveBox): Promise<string[]> {
  const { id } = box.record;
  if (readEnforced(box.visible)?.mode === "none") return [];
  try {
    const { status } = await sendControl(box.engine, box, { op: "status" });
    return (status?.degraded ?? []).map((text) => `session ${id} is degraded: ${text}`);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return [`session ${id} is degraded: ${error.complaints[0]?.what ?? "its keeper does not answer"}`];
  }
}
