import { z } from "zod";
import { addressFromValue } from "./address.ts";
import type { BoxPolicy } from "./box-policy.ts";
import { decide } from "./decide.ts";
import { type EffectiveEntry, renderOrigin, type Origin } from "./effective-list.ts";
import type { Host } from "./host-name.ts";
import { renderRule, type Policy } from "./policy.ts";

const port = z.int().min(1).max(65_535);
const origins = z.array(z.string());

/** The policy of a box for people, agents and programs: what they may know, in canonical form. Kept apart from `PolicyDocument`, which is what a box obeys. */
export const policyViewSchema = z.strictObject({
  version: z.literal(1),
  mode: z.enum(["none", "allowlist", "full"]),
  topology: z.enum(["container", "sidecar"]),
  enforcement: z.enum(["name", "address"]),
  agent: z.string(),
  /** Sorted as the lists are. `deniedBy`: the rule that takes every port of the entry away again. */
  entries: z.array(z.strictObject({ text: z.string(), ports: z.array(port), origins, deniedBy: z.string().nullable() })),
  /** Names that may lead to private addresses. */
  private: z.array(z.strictObject({ name: z.string(), ports: z.array(port), origins })),
  /** GitHub's address blocks, while github.com is allowed. */
  github: z.strictObject({ blocks: z.int(), ports: z.array(port), origin: z.string() }).nullable(),
  removed: z.array(z.strictObject({ text: z.string(), origins, by: z.string(), byOrigin: z.string() })),
  blocks: z.array(z.strictObject({ text: z.string(), origin: z.string() })),
  /** In their order. */
  rules: z.array(z.strictObject({ text: z.string(), action: z.enum(["allow", "deny"]), origins })),
  presets: z.array(z.string()),
  critical: z.array(z.strictObject({ name: z.string(), port, origin: z.string() })),
  allowPrivate: z.array(z.string()),
  ssh: z.enum(["listed", "any", "off"]),
  /** `limited`: GET, HEAD and OPTIONS only. */
  methods: z.enum(["limited", "full"]),
  /** Whether TLS is opened and judged, with a certificate of the box's own. */
  intercept: z.boolean(),
  /** What holds for a name that nothing mentions. */
  base: z.enum(["allow-list", "deny-list"]),
  report: z.boolean(),
  warnings: z.array(z.string()),
  notes: z.array(z.string()),
  /** How a program in the box sees that it was refused. */
  refusal: z.strictObject({ name: z.string(), web: z.string().nullable(), tcp: z.string(), other: z.string() }),
  /** What a human may run on the host. */
  allowCommand: z.string(),
});
export type PolicyView = z.infer<typeof policyViewSchema>;

export type ViewContext = Pick<PolicyView, "mode" | "topology" | "enforcement" | "agent"> & { notes?: readonly string[] };

const REFUSAL: Omit<PolicyView["refusal"], "web"> = {
  name: "NXDOMAIN at once: the name does not exist here",
  tcp: "connection refused at once",
  other: "ICMP: administratively prohibited",
};
/** On ports 80 and 443, where the proxy reads what a connection says. */
const WEB_REFUSAL = "HTTP 403 with the header x-proxy-error and a reason in the body; in TLS the alert access_denied";
export const ALLOW_COMMAND = "agentbox policy allow HOST";
const PRESET_LABEL = "preset ";

/** Shows the policy of a box; null for a box without a firewall or without a network, which has none. */
export function viewPolicy(box: BoxPolicy | null, { mode, topology, enforcement, agent, notes = [] }: ViewContext): PolicyView {
  const context = { version: 1 as const, mode, topology, enforcement, agent, notes: [...notes], refusal: { ...REFUSAL, web: enforcement === "name" ? WEB_REFUSAL : null }, allowCommand: ALLOW_COMMAND };
  if (box === null) return { ...EMPTY, ...context };
  const { list, policy } = box;
  return {
    ...context,
    entries: list.entries.map((entry) => ({ text: entry.text, ports: [...entry.entry.ports], origins: renderOrigins(entry.origins), deniedBy: findDenial(policy, entry) })),
    private: box.private.map(({ name, ports, origins: from }) => ({ name, ports: [...ports], origins: renderOrigins(from) })),
    github: viewGithub(box),
    removed: list.removed.map(({ text, origins: from, by }) => ({ text, origins: renderOrigins(from), by: by.text, byOrigin: renderOrigin(by.origin) })),
    blocks: list.blocks.map(({ text, origin }) => ({ text, origin: renderOrigin(origin) })),
    rules: policy.rules.filter(({ tier }) => tier === "rules").map((rule) => ({ text: renderRule(rule), action: rule.action, origins: renderOrigins(rule.origins) })),
    presets: findPresets(list.entries),
    critical: list.critical.map(({ name, port: on, origin }) => ({ name, port: on, origin: renderOrigin(origin) })),
    allowPrivate: policy.allowPrivate.map(({ text }) => text),
    ssh: box.ssh,
    methods: policy.methods,
    intercept: box.enforcement === "name" && box.nameWall.intercept,
    base: policy.rules.some(({ tier }) => tier === "base") ? "deny-list" : "allow-list",
    report: box.report,
    warnings: [...box.warnings],
  };
}

const EMPTY: Omit<PolicyView, keyof ViewContext | "version" | "refusal" | "allowCommand"> = {
  entries: [],
  private: [],
  github: null,
  removed: [],
  blocks: [],
  rules: [],
  presets: [],
  critical: [],
  allowPrivate: [],
  ssh: "listed",
  methods: "full",
  intercept: false,
  base: "allow-list",
  report: false,
  warnings: [],
};

function renderOrigins(list: readonly Origin[]): string[] {
  return [...new Set(list.map((origin) => renderOrigin(origin)))];
}

/** The rule that denies an entry on all its ports; null for wildcards, of which a part may be open. */
function findDenial(policy: Policy, { entry: { target, ports } }: EffectiveEntry): string | null {
  const host: Host | undefined =
    target.kind === "range"
      ? { kind: "address", address: addressFromValue(target.range.family, target.range.base) }
      : target.pattern.kind === "exact"
        ? { kind: "name", name: target.pattern.name }
        : undefined;
  if (host === undefined) return null;
  const rules = ports.map((on) => decide(policy, { host, port: on }).rule);
  const [first] = rules;
  return first !== undefined && rules.every((rule) => rule?.action === "deny") ? renderRule(first) : null;
}

function viewGithub({ list, policy }: BoxPolicy): PolicyView["github"] {
  const listed = new Set(list.entries.flatMap(({ origins: from }) => from));
  const blocks = policy.rules.filter(({ tier, match, origins: from }) => tier === "list" && match.kind === "range" && !from.some((origin) => listed.has(origin)));
  const [first] = blocks;
  if (first === undefined || first.ports === "any") return null;
  const [origin] = first.origins;
  return { blocks: blocks.length, ports: [...first.ports], origin: origin?.label ?? "" };
}

function findPresets(entries: readonly EffectiveEntry[]): string[] {
  const labels = entries.flatMap(({ origins: from }) => from.map(({ label }) => label));
  return [...new Set(labels)].filter((label) => label.startsWith(PRESET_LABEL)).map((label) => label.slice(PRESET_LABEL.length));
}
