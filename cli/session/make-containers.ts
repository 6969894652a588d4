import type { BootEvent } from "../../policy/boot-event.ts";
import { createContainer, startContainer } from "../engine/containers.ts";
import type { Engine } from "../engine/engine.ts";
import { buildSeccompProfile } from "../engine/seccomp-profile.ts";
import type { Screen } from "../ui/screen.ts";
import { writeWhole } from "./whole-file.ts";
import { awaitReady } from "./launch.ts";
import type { BoxContainers, ContainerPart } from "./plan-containers.ts";
import type { Session } from "./session.ts";
import { type PolicyTexts, type VisibleContent, writeVisible } from "./visible-directory.ts";

export type Making = {
  session: Session;
  containers: BoxContainers;
  policy: PolicyTexts | undefined;
  /** What the box's programs trust instead of the image's bundle; undefined leaves them that. */
  bundle: string | undefined;
  engine: Engine;
  screen: Screen;
  signal: AbortSignal;
};

/**
 * Makes the containers of a box and returns what the holder says to be in force. The agent's is not started. A holder is, and serves when this returns: the
 * agent's container is made beside its start, since both take the engine a while.
 */
export async function makeContainers(making: Making): Promise<string | undefined> {
  const { session, containers: { box, holder }, policy, bundle, engine, signal } = making;
  await writeWhole(session.seccomp, JSON.stringify(buildSeccompProfile()), 0o600);
  if (holder === undefined) {
    await createPart(engine, box, { visible: session.box, policy, bundle, followed: box.plan.terminal });
    signal.throwIfAborted();
    return undefined;
  }
  await createPart(engine, holder, { visible: session.holder, policy: undefined, bundle, followed: true });
  signal.throwIfAborted();
  const [made, started] = await Promise.allSettled([createPart(engine, box, { visible: session.box, policy, bundle, followed: box.plan.terminal }), startHolder(making, holder)]);
  // Only when neither is at work any more may what they made be removed.
  if (made.status === "rejected") throw made.reason;
  if (started.status === "rejected") throw started.reason;
  signal.throwIfAborted();
  return started.value;
}

type Visibility = Omit<VisibleContent, "spec">;

async function createPart(engine: Engine, { spec, plan }: ContainerPart, visibility: Visibility): Promise<void> {
  const mounts = await writeVisible({ ...visibility, spec });
  await createContainer(engine, { ...plan, mounts: [...plan.mounts, ...mounts] });
}

async function startHolder({ session, engine, screen, signal }: Making, { plan }: ContainerPart): Promise<string | undefined> {
  await startContainer(engine, plan.name);
  const ready = await awaitReady({ engine, container: plan.name, visible: session.holder, signal, report: (event) => screen.report(calmDown(event)) });
  return ready.event === "ready" ? ready.text : undefined;
}

/** A box is ready when its agent's gate has seen the walls; until then a ready holder is one more step that is done. */
function calmDown(event: BootEvent): BootEvent {
  return event.event === "ready" ? { event: "done", step: "firewall", ms: event.ms, detail: event.text } : event;
}
