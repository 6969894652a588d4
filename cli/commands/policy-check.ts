import { z } from "zod";
import type { BoxPolicy } from "../../policy/box-policy.ts";
import { type EffectiveEntry, renderOrigin } from "../../policy/effective-list.ts";
import { wildcardSuffix } from "../../policy/pattern.ts";
import { findSharedStore } from "../../policy/shared-stores.ts";
import type { Edge } from "../edge.ts";
import { type ProjectPolicy, readProjectPolicy, viewProject } from "./project-policy.ts";

const finding = z.strictObject({
  /** `problem`: a start is refused. `warning`: it opens more than one thinks. `note`: worth knowing. */
  level: z.enum(["problem", "warning", "note"]),
  text: z.string(),
});

/** The answer of `agentbox policy check --json`. */
export const checkSchema = z.strictObject({ version: z.literal(1), source: z.string().nullable(), findings: z.array(finding) });

type Finding = z.infer<typeof finding>;

/** A configuration that no start takes. */
const REFUSED = 78;

/** Looks for doubtful things in the configuration; mistakes are thrown. The exit code is 78 when a start would be refused. */
export async function checkPolicy({ host, print }: Edge, { agent, json }: { agent: string | undefined; json: boolean }): Promise<number> {
  const project = await readProjectPolicy(host, agent);
  const findings = [...judgeFile(project), ...judgeEntries(project)];
  if (json) {
    const answer: z.infer<typeof checkSchema> = { version: 1, source: project.config.source ?? null, findings };
    await print(`${JSON.stringify(answer, undefined, 2)}\n`);
  } else {
    await print(`${renderFindings(project, findings).join("\n")}\n`);
  }
  return findings.some(({ level }) => level === "problem") ? REFUSED : 0;
}

function renderFindings({ config, policy, network }: ProjectPolicy, findings: readonly Finding[]): string[] {
  const source = config.source ?? "no configuration file";
  const reach = network.mode === "allowlist" ? `${policy.list.entries.length} entries` : network.why;
  const head = `${source}: network ${network.mode}, ${reach}`;
  return findings.length === 0 ? [`${head}; nothing to say`] : [head, ...findings.map(({ level, text }) => `${level.padEnd(7)}  ${text}`)];
}

function judgeFile({ config, trust, policy, network }: ProjectPolicy): Finding[] {
  const open = config.config.network !== undefined && network.mode === "full" ? [`a start here has no firewall: ${network.why}`] : [];
  return [
    ...(trust.kind === "untrusted" ? [{ level: "problem", text: `${config.source ?? "the file"} is not trusted yet, and widens: ${trust.widenings.join("; ")}; agree by \`agentbox policy trust\`` } as const] : []),
    ...[...open, ...policy.warnings].map((text) => ({ level: "warning", text }) as const),
    ...(policy.report ? [{ level: "warning", text: "report mode: everything is let through and written down" } as const] : []),
    ...config.notices.map((text) => ({ level: "note", text }) as const),
  ];
}

function judgeEntries(project: ProjectPolicy): Finding[] {
  const { policy } = project;
  const own = policy.list.entries.filter((entry) => entry.origins.some(isOwners));
  const denied = viewProject(project, []).entries.filter(({ deniedBy }) => deniedBy !== null);
  return [
    ...own.flatMap(judgeReach),
    ...own.filter(({ origins }) => origins.some((origin) => !isOwners(origin))).map((entry) => note(`${entry.text} (${placeOf(entry)}) is allowed already by ${entry.origins.filter((origin) => !isOwners(origin)).map(renderOrigin).join(", ")}`)),
    ...policy.list.removed.filter(({ origins }) => origins.some(isOwners)).map((entry) => note(`${entry.text} (${placeOf(entry)}) has no effect: the block ${entry.by.text} (${renderOrigin(entry.by.origin)}) removes it`)),
    ...denied.map(({ text, deniedBy, origins }) => note(`${text} (${origins.join(", ")}) has no effect: the rule ${deniedBy} is in front of it`)),
    ...findIdleBlocks(policy).map(note),
  ];
}

/** What opens more than a single host. */
function judgeReach(entry: EffectiveEntry): Finding[] {
  const { target } = entry.entry;
  if (target.kind === "range") return [];
  const { pattern } = target;
  const suffix = pattern.kind === "exact" ? undefined : wildcardSuffix(pattern);
  const name = pattern.kind === "exact" ? pattern.name : suffix;
  const store = name === undefined ? undefined : findSharedStore(name, suffix !== undefined);
  if (store !== undefined) return [{ level: "warning", text: `${entry.text} (${placeOf(entry)}) is a place where anybody may keep anything (${store}): an agent can carry data out through it` }];
  return suffix === undefined ? [] : [note(`${entry.text} (${placeOf(entry)}) opens every name below ${suffix}`)];
}

/** Blocks that remove nothing and lie outside of all that is allowed. */
function findIdleBlocks({ list, policy }: BoxPolicy): string[] {
  const used = new Set(list.removed.map(({ by }) => by));
  return list.blocks
    .filter((block) => !used.has(block) && block.block.kind === "pattern" && block.block.pattern.kind === "exact" && isExact(block.block.pattern.name))
    .map(({ text, origin }) => `the block ${text} (${renderOrigin(origin)}) takes nothing away: nothing allows it`);

  function isExact(name: string): boolean {
    const allows = policy.rules.filter(({ action }) => action === "allow");
    return !allows.some(({ match }) => match.kind === "pattern" && match.pattern.kind !== "exact" && (wildcardSuffix(match.pattern) === undefined || name.endsWith(`.${wildcardSuffix(match.pattern)}`) || name === wildcardSuffix(match.pattern)));
  }
}

function isOwners({ label }: { label: string }): boolean {
  return label.endsWith("config.toml") || label.startsWith("allow_file ");
}

function placeOf({ origins }: EffectiveEntry): string {
  return origins.filter(isOwners).map(renderOrigin).join(", ");
}

function note(text: string): Finding {
  return { level: "note", text };
}
