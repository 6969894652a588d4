import { type BoxPolicy } from "../../policy/box-policy.ts";
import { findAgentProfile } from "../../policy/agent-profile.ts";
import { type Complaint, KnownError } from "../../policy/errors.ts";
import { describeAgent } from "../commands/project-policy.ts";
import { detectEngine } from "../engine/detect.ts";
import type { EngineKind } from "../engine/engine.ts";
import type { Host } from "../host.ts";
import { readBoxPolicy } from "../session/allowlist.ts";
import { readEnforcedKind } from "../session/enforced-policy.ts";
import { withEnforcement } from "../session/enforcement.ts";
import { PATIENT_MS, sendControl } from "../session/control.ts";
import { renderPolicyTexts } from "../session/policy-texts.ts";
import { findRunningBoxes, type RunningBox } from "../session/running-boxes.ts";
import { readSessions } from "../session/session-record.ts";
import { writePolicyTexts } from "../session/visible-directory.ts";
import type { Engine } from "../engine/engine.ts";
import { type Overlay, readOverlay, writeOverlay } from "./overlay.ts";
import type { SessionConfig } from "./read-config.ts";

/** A running box and the engine that it runs in. */
export type LiveBox = RunningBox & { engine: Engine };

/** How one box took a change: what it opened and closed, or why it goes on as before. */
export type BoxOutcome = { session: string } & ({ ok: true; added: readonly string[]; removed: readonly string[] } | { ok: false; complaints: readonly Complaint[] });

/** Finds the firewalled boxes of a project that run, in every engine that one was started with. */
export async function findLiveBoxes(host: Host, project: string, requested: EngineKind | undefined): Promise<LiveBox[]> {
  const sessions = await readSessions(host.agentboxHome);
  const kinds = new Set(sessions.filter(({ record }) => record.project === project && record.firewall && record.ended === null).map(({ record }) => record.engine));
  const found: LiveBox[] = [];
  for (const kind of kinds) {
    if (requested !== undefined && kind !== requested) continue;
    const engine = await detectEngine({ requested: kind, env: host.env });
    found.push(...(await findRunningBoxes(host, engine, project)).map((box) => ({ ...box, engine })));
  }
  return found;
}

export type LiveChange = {
  host: Pick<Host, "root">;
  config: SessionConfig;
  boxes: readonly LiveBox[];
  /** Makes the changes of a session anew from those it has. */
  change: (overlay: Overlay) => Overlay;
  /** Throws when the policy that would come into force is not what was asked for. */
  verify: (policy: BoxPolicy) => void;
  /** The change closes something, so that a box that is slow to answer is waited for. */
  closes?: boolean;
};

/** Has every box take the changed policy, side by side, each whole or not at all. To be called under the policy lock. */
export async function changeBoxes({ boxes, ...rest }: LiveChange): Promise<BoxOutcome[]> {
  return await Promise.all(
    boxes.map(async (box) => {
      const session = box.record.id;
      try {
        return { session, ...(await changeBox(box, rest)) };
      } catch (error) {
        if (!(error instanceof KnownError)) throw error;
        return { session, ok: false, complaints: error.complaints };
      }
    }),
  );
}

type Outcome = { ok: true; added: readonly string[]; removed: readonly string[] } | { ok: false; complaints: readonly Complaint[] };

async function changeBox(box: LiveBox, { host, config, change, verify, closes = false }: Omit<LiveChange, "boxes">): Promise<Outcome> {
  const { record, directory, visible, engine } = box;
  const enforced = readEnforcedKind(visible);
  if (enforced?.mode === "none") {
    const fix = "end it, then start again: `agentbox policy show` tells what a start would open";
    return { ok: false, complaints: [{ what: "this box was started without any network", expected: "a box with an allowlist", fix }] };
  }
  const overlay = change(readOverlay(directory));
  const profile = findAgentProfile(record.agent);
  const document = withEnforcement(config.document(describeAgent(profile), overlay), enforced?.enforcement);
  // Judged here by the box's own code first: the answer of the box is the same, with worse places.
  const policy = await readBoxPolicy(host.root, document);
  verify(policy);
  // The texts are made while the box works.
  const [reply, texts] = await Promise.all([
    sendControl(engine, box, { op: "replace", document }, closes ? PATIENT_MS : undefined),
    Promise.resolve(renderPolicyTexts({ policy, mode: "allowlist", topology: record.topology, agent: record.agent })),
  ]);
  if (!reply.ok) return { ok: false, complaints: reply.complaints };
  await writeOverlay(directory, overlay);
  await writePolicyTexts(visible, texts);
  return { ok: true, added: reply.added, removed: reply.removed };
}
