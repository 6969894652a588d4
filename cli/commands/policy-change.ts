import { DEFAULT_AGENT, findAgentProfile } from "../../policy/agent-profile.ts";
import type { BoxPolicy } from "../../policy/box-policy.ts";
import { addAllowHost, addBlockHost, addPreset, removeAllowHost, removeBlockHost } from "../../policy/config-edit.ts";
import { decide } from "../../policy/decide.ts";
import { parseEntry } from "../../policy/entry.ts";
import { namesToResolve, renderOrigin } from "../../policy/effective-list.ts";
import { ConfigError, renderComplaint, UsageError } from "../../policy/errors.ts";
import { warnSpecial } from "../../policy/special-entry.ts";
import { addressFromValue } from "../../policy/address.ts";
import type { Host as PolicyHost } from "../../policy/host-name.ts";
import type { ChangeScope } from "../args-policy.ts";
import { editConfig, type EditOutcome } from "../config/edit-config.ts";
import { withPolicyLock } from "../config/exclusive.ts";
import { type BoxOutcome, changeBoxes, findLiveBoxes, type LiveBox } from "../config/live-change.ts";
import { changeOverlay, type Overlay } from "../config/overlay.ts";
import { readConfig, type SessionConfig } from "../config/read-config.ts";
import { requireTrust } from "../config/trust.ts";
import type { Edge } from "../edge.ts";
import type { EngineKind } from "../engine/engine.ts";
import type { Host } from "../host.ts";
import { readBoxPolicy } from "../session/allowlist.ts";
import { describeAgent, findProject } from "./project-policy.ts";
import { requirePreset } from "./policy-show.ts";

export type Change = { side: keyof Overlay; hosts: readonly string[]; scope: ChangeScope; engine: EngineKind | undefined };

const ONCE_MS = 60_000;
/** Some box did not take the change and goes on as before. */
const NOT_APPLIED = 70;

/** Allows or denies hosts in the running boxes of this project, and where asked for in the configuration. Returns the exit code. */
export async function changePolicy({ host, print, say }: Edge, { side, hosts, scope, engine }: Change): Promise<number> {
  return await withPolicyLock(host.agentboxHome, async () => {
    const [boxes, config] = await readSurroundings(host, engine);
    const now = Date.now();
    if (side === "allow") for (const text of hosts.flatMap(warnHost)) say(text);
    const closes = side === "deny";
    const failed = closes ? (session: string): string => warnOpen(boxes, session, hosts) : undefined;
    const verify = (policy: BoxPolicy): void => (side === "allow" ? requireAllowed(policy, hosts) : undefined);
    if (scope !== "always" && boxes.length === 0) throw refuseIdle(side, hosts);
    await requireTrust({ host, config, ask: undefined });
    if (scope !== "always") {
      const words = hosts.map((text) => (scope === "once" ? { text, until: now + ONCE_MS } : { text }));
      const outcomes = await changeBoxes({ host, config, boxes, verify, closes, change: (overlay) => changeOverlay(overlay, { side, words, now }) });
      const until = scope === "once" ? ` until ${new Date(now + ONCE_MS).toISOString()}` : " until the session ends";
      return await tell({ print, say }, outcomes, { said: `${hosts.join(", ")} ${side === "allow" ? "allowed" : "denied"}${until}`, failed });
    }
    if (side === "allow") await requirePossible(host, config, hosts);
    const edited = await editConfig({ host, config, edit: (text, file) => editHosts(text, file, side, hosts) });
    await print(`${describeEdit(edited)}\n`);
    return await applyEdited({ host, print, say }, { edited, boxes, verify, closes, failed, said: `${hosts.join(", ")} ${side === "allow" ? "allowed" : "denied"}`, change: (overlay) => dropWords(overlay, hosts) });
  });
}

/** The engine is asked for the boxes while the configuration is read. */
async function readSurroundings(host: Host, engine: EngineKind | undefined): Promise<[LiveBox[], SessionConfig]> {
  return await Promise.all([findLiveBoxes(host, findProject(host), engine), readConfig({ host, projectPath: findProject(host) })]);
}

function warnHost(text: string): readonly string[] {
  const entry = parseEntry(text, "list");
  const warning = entry.ok ? warnSpecial(entry.value) : undefined;
  return warning === undefined ? [] : [warning];
}

/** Adds a preset to the configuration, and has the running boxes take it. */
export async function applyPreset({ host, print, say }: Edge, { preset, engine }: { preset: string; engine: EngineKind | undefined }): Promise<number> {
  return await withPolicyLock(host.agentboxHome, async () => {
    const [boxes, config] = await readSurroundings(host, engine);
    const { id } = requirePreset(config.presets, preset);
    const edited = await editConfig({ host, config, edit: (text, file) => addPreset(text, id, file) });
    await print(`${describeEdit(edited)}\n`);
    if (id === "unrestricted" || id === "lockdown") {
      if (boxes.length > 0) say("boxes that run keep the network that they have; start them anew");
      return 0;
    }
    return await applyEdited({ host, print, say }, { edited, boxes, verify: () => undefined, said: `preset ${id} in force`, change: (overlay) => overlay });
  });
}

type Applying = { edited: EditOutcome; boxes: readonly LiveBox[]; verify: (policy: BoxPolicy) => void; closes?: boolean; change: (overlay: Overlay) => Overlay } & Telling;

async function applyEdited({ host, print, say }: Edge, { edited, boxes, verify, closes, change, ...telling }: Applying): Promise<number> {
  if (edited.created) say(`this project has a configuration of its own now (${edited.file}): every start here has the firewall on`);
  if (boxes.length === 0) {
    say("no box of this project runs; the next start takes it");
    return 0;
  }
  return await tell({ print, say }, await changeBoxes({ host, config: edited.config, boxes, verify, closes: closes === true, change }), telling);
}

function describeEdit({ file, changed, created }: EditOutcome): string {
  if (!changed) return `${file} says so already`;
  return `${file} ${created ? "written" : "changed"}`;
}

function editHosts(text: string, file: string, side: keyof Overlay, hosts: readonly string[]): string {
  const [remove, add] = side === "allow" ? [removeBlockHost, addAllowHost] : [removeAllowHost, addBlockHost];
  return hosts.reduce((current, word) => add(removeWhere(remove, current, word, file), word, file), text);
}

/** An entry with ports is no block, and a glob is no entry: then there is nothing of the other kind to remove. */
function removeWhere(remove: typeof removeAllowHost, text: string, word: string, file: string): string {
  try {
    return remove(text, word, file);
  } catch (error) {
    if (error instanceof ConfigError) return text;
    throw error;
  }
}

/** What the file says from now on needs no word of a session any more. */
function dropWords({ allow, deny }: Overlay, hosts: readonly string[]): Overlay {
  const keep = ({ text }: { text: string }): boolean => !hosts.includes(text);
  return { allow: allow.filter(keep), deny: deny.filter(keep) };
}

/** A host that stays refused shall not be written down as allowed. */
async function requirePossible(host: Edge["host"], config: SessionConfig, hosts: readonly string[]): Promise<void> {
  const document = config.document(describeAgent(findAgentProfile(config.config.box?.agent ?? DEFAULT_AGENT)));
  const own = config.source;
  const others = document.blocks.map((blocks) => (blocks.label === own ? { ...blocks, words: blocks.words.filter(({ text }) => !hosts.includes(text)) } : blocks));
  const allowed = { label: "policy allow", surface: "list" as const, words: hosts.map((text) => ({ text })) };
  requireAllowed(await readBoxPolicy(host.root, { ...document, blocks: others, sources: [...document.sources, allowed] }), hosts);
}

function requireAllowed({ policy }: BoxPolicy, hosts: readonly string[]): void {
  const complaints = hosts.flatMap((text) => {
    const entry = parseEntry(text, "list");
    if (!entry.ok) return [entry.complaint];
    const { target, ports } = entry.value;
    const asked: PolicyHost[] = target.kind === "range" ? [{ kind: "address", address: addressFromValue(target.range.family, target.range.base) }] : namesToResolve(entry.value).map((name) => ({ kind: "name", name }));
    const denials = asked.flatMap((one) => ports.flatMap((port) => decide(policy, { host: one, port }).rule ?? []).filter(({ action }) => action === "deny"));
    const [denial] = denials;
    if (denial === undefined) return [];
    const where = denial.origins.map(renderOrigin).join(", ");
    return [{ what: `${text} stays refused: ${denial.text} is denied${where === "" ? "" : ` by ${where}`}, and a deny wins over every allow`, expected: "a host that nothing denies", fix: where.startsWith("policy deny") ? `agentbox policy allow ${text}` : "take it out of there first" }];
  });
  if (complaints.length > 0) throw new ConfigError(complaints);
}

function refuseIdle(side: keyof Overlay, hosts: readonly string[]): UsageError {
  return new UsageError({ what: "no box of this project runs with a firewall", expected: "a running box, or --always", fix: `to write it into the configuration: agentbox policy ${side} --always ${hosts.join(" ")}` });
}

/** What is said of a box that took the change; and of one that did not, by its session. */
export type Telling = { said: string; failed?: ((session: string) => string) | undefined };

/** Prints what became of a change in each box, and returns the exit code. */
export async function tell({ print, say }: Pick<Edge, "print" | "say">, outcomes: readonly BoxOutcome[], { said, failed = (session) => `session ${session} goes on as before` }: Telling): Promise<number> {
  for (const outcome of outcomes) {
    if (outcome.ok) await print(`session ${outcome.session}: ${said}\n`);
    else for (const complaint of outcome.complaints) say(`${failed(outcome.session)}: ${renderComplaint(complaint)}`);
  }
  return outcomes.every(({ ok }) => ok) ? 0 : NOT_APPLIED;
}

/** Whoever denies a host has to know that a box still reaches it, and what ends that without the box's help. */
function warnOpen(boxes: readonly LiveBox[], session: string, hosts: readonly string[]): string {
  const box = boxes.find(({ record }) => record.id === session);
  const removal = box === undefined ? "" : `, or by \`${box.record.engine} rm -f ${box.record.container}\``;
  return `${hosts.join(", ")} STILL OPEN in session ${session}, which goes on as before (to be sure, end its box by Ctrl-C where it runs${removal})`;
}
