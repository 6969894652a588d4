import { decide } from "../../policy/decide.ts";
import { explainQuestion, type Explanation, renderExplanation } from "../../policy/explain.ts";
import { renderPolicyShow } from "../../policy/policy-show.ts";
import { UsageError } from "../../policy/errors.ts";
import { findNearest } from "../../policy/nearest.ts";
import { parseHost } from "../../policy/host-name.ts";
import { escapeUnseen, quote } from "../../policy/parsed.ts";
import type { Preset } from "../../policy/preset.ts";
import { readOverlay } from "../config/overlay.ts";
import { readPresets } from "../config/preset-files.ts";
import type { Edge } from "../edge.ts";
import { readBoxPolicy } from "../session/allowlist.ts";
import { readSessions, type RecordedSession } from "../session/session-record.ts";
import { readSessionStatus } from "../session/session-status.ts";
import { describeHealth } from "./box-health.ts";
import { isRunning } from "./session-choice.ts";
import { askHost, describeAgent, findProject, type ProjectPolicy, readProjectPolicy, viewProject } from "./project-policy.ts";

/** Shows all that a box of this project may reach. */
export async function showPolicy({ host, print }: Edge, { agent, json }: { agent: string | undefined; json: boolean }): Promise<number> {
  const project = await readProjectPolicy(host, agent);
  const [sessions, health] = await Promise.all([findRunning(host, findProject(host)).then(describeSessions), describeHealth(host, findProject(host))]);
  const view = viewProject(project, [...sessions, ...health]);
  await print(json ? `${JSON.stringify(view, undefined, 2)}\n` : `${renderPolicyShow(view).join("\n")}\n`);
  return 0;
}

/** Says whether a box of this project may reach a host; the exit code is 0 either way. */
export async function explainHost({ host, print }: Edge, { question, agent, json }: { question: string; agent: string | undefined; json: boolean }, resolve = askHost): Promise<number> {
  const project = await readProjectPolicy(host, agent);
  const { policy, network, trust, config } = project;
  const first = explainQuestion(policy, { host: question });
  const asked = parseHost(first.host);
  // Only what is allowed is asked for: a name that is not never reaches a resolver.
  const addresses = asked.ok && asked.value.kind === "name" && decide(policy.policy, { host: asked.value }).action === "allow" ? await resolve(first.host) : [];
  const explained = explainQuestion(policy, { host: question, addresses });
  const notes = [
    ...(network.firewall ? [] : [`the firewall is off for a start here (${network.why}), so everything is reachable; this is what it would say`]),
    ...(network.mode === "none" ? [`a box here gets no network at all (${network.why})`] : []),
    ...(trust.kind === "untrusted" ? [`${config.source ?? "the file"} is not trusted yet`] : []),
    ...(addresses.length > 0 ? ["the addresses are those that this machine finds now; a box asks for itself"] : []),
  ];
  const changes = await noteChanges(project, { host, question, addresses, verdict: explained });
  const answer: Explanation = { ...explained, notes: [...explained.notes, ...notes] };
  if (json) {
    await print(`${JSON.stringify({ ...answer, notes: [...changes, ...answer.notes] }, undefined, 2)}\n`);
    return 0;
  }
  // What runs now is what is asked about most often.
  const heading = changes.length === 0 ? [] : [...changes, "by the configuration, as the next start has it:"];
  await print(`${[...heading.map((line) => escapeUnseen(line)), ...renderExplanation(answer)].join("\n")}\n`);
  return 0;
}

/** Lists the presets, or shows one with its hosts. */
export async function showPresets({ host, print }: Edge, id: string | undefined): Promise<number> {
  const presets = await readPresets(host.root);
  if (id === undefined) {
    const width = Math.max(...presets.map((preset) => preset.id.length));
    const lines = presets.map((preset) => `${preset.id.padEnd(width)}  ${preset.title}: ${preset.description}`);
    await print(`${lines.join("\n")}\n\nThe hosts of one: agentbox policy presets PRESET; to use it: agentbox policy apply PRESET\n`);
    return 0;
  }
  const preset = requirePreset(presets, id);
  await print(`${[`${preset.id}: ${preset.title}, ${preset.description} (${preset.date})`, ...renderPresetHosts(preset).map((line) => `  ${line}`)].join("\n")}\n`);
  return 0;
}

/** The hosts of a preset, and what it means beside them. */
export function renderPresetHosts({ id, entries }: Preset): string[] {
  if (id === "unrestricted") return ["everything: a box with it has no firewall"];
  if (id === "lockdown") return ["nothing: a box with it has no network"];
  return entries.map(({ text }) => text);
}

/** Finds a preset by its id. Throws UsageError with the nearest one. */
export function requirePreset(presets: readonly Preset[], id: string): Preset {
  const found = presets.find((preset) => preset.id === id);
  if (found !== undefined) return found;
  const ids = presets.map((preset) => preset.id);
  const near = findNearest(id, ids);
  throw new UsageError({ what: `there is no preset ${quote(id)}`, expected: ids.join(", "), fix: near === undefined ? "see agentbox policy presets" : `did you mean ${near}?` });
}

/** Finds the sessions of a project that run with a firewall. */
export async function findRunning({ agentboxHome }: Edge["host"], project: string): Promise<RecordedSession[]> {
  const own = (await readSessions(agentboxHome)).filter(({ record }) => record.project === project && record.firewall);
  const running = await Promise.all(own.map(async (session) => ((await isRunning(session)) ? [session] : [])));
  return running.flat();
}

/** What running sessions have apart from the configuration, and what is wrong with them. */
async function describeSessions(sessions: readonly RecordedSession[]): Promise<string[]> {
  const found = await Promise.all(
    sessions.map(async ({ directory, record }) => {
      const { allow, deny } = readOverlay(directory);
      const status = await readSessionStatus(directory);
      return [
        ...(allow.length > 0 ? [`session ${record.id} may also reach ${allow.map(renderWord).join(", ")}`] : []),
        ...(deny.length > 0 ? [`session ${record.id} may not reach ${deny.map(renderWord).join(", ")}`] : []),
        ...(status?.degraded ?? []).map((text) => `session ${record.id} is degraded: ${text}`),
      ];
    }),
  );
  return found.flat();
}

function renderWord({ text, until }: { text: string; until?: number | undefined }): string {
  return until === undefined ? text : `${text} (until ${new Date(until).toISOString()})`;
}

type ChangeNote = { host: Edge["host"]; question: string; addresses: readonly string[]; verdict: Explanation };

/** Says where a session that was changed judges otherwise than the configuration. */
async function noteChanges({ config, profile }: ProjectPolicy, { host, question, addresses, verdict }: ChangeNote): Promise<string[]> {
  const notes: string[] = [];
  for (const { directory, record } of await findRunning(host, config.projectPath)) {
    const overlay = readOverlay(directory);
    if (overlay.allow.length + overlay.deny.length === 0) continue;
    const policy = await readBoxPolicy(host.root, config.document(describeAgent(profile), overlay));
    const { action, rule } = explainQuestion(policy, { host: question, addresses });
    if (action !== verdict.action) notes.push(`session ${record.id}: ${verdict.host} is ${action === "allow" ? "allowed" : "refused"}${rule === null ? "" : ` by ${rule.text} (${rule.origins.join(", ")})`}`);
  }
  return notes;
}
