import type { BoxSpec } from "../policy/box-spec.ts";
import type { EffectiveList } from "../policy/effective-list.ts";
import { KnownError, ResolveError } from "../policy/errors.ts";
import { applyPlan, closeNetwork, verifyRules } from "./apply.ts";
import type { RunCommand } from "./commands.ts";
import { checkCapabilities, type Kernel, probeKernel } from "./kernel.ts";
import { type BoxPolicy, loadPolicy } from "./load-policy.ts";
import type { Log } from "./log.ts";
import { readSubnets, requireOwnNamespace } from "./namespace.ts";
import { collectOpenings, type Openings } from "./openings.ts";
import { planRules, type PlanInput } from "./plan.ts";
import { type Resolution, resolveNames } from "./resolve.ts";
import { type ResolverFiles, readResolverFiles } from "./resolver-files.ts";
import type { Plan } from "./rule.ts";
import { validateReach } from "./validate.ts";

export type BootInput = { spec: BoxSpec; allowlistDir: string; run: RunCommand; log: Log };

/**
 * Brings the firewall up, step by step; returns only when it is in force and verified. A step that fails
 * throws, and everything up to there is closed: nothing opens before the last rule is in place.
 */
export async function boot({ spec, allowlistDir, run, log }: BootInput): Promise<void> {
  const started = performance.now();
  const files = readResolverFiles();
  const facts = readFacts(spec, files);
  const closed = planRules({ ...facts, literal: [], learned: [] });

  let kernel = await step(log, "kernel", async () => {
    checkCapabilities();
    requireOwnNamespace();
    const probed = await probeKernel(run, closed);
    return [probed, `${probed.backend}, ${probed.ipv6 ? "IPv4 and IPv6" : "IPv4 only"}`];
  });
  kernel = await step(log, "close", async () => [await closeNetwork(run, kernel, closed), "both families closed"]);
  warn(log, "kernel", kernel.warnings);

  const policy = await step(log, "allowlist", async () => {
    const loaded = spec.mode === "none" ? NO_POLICY : await loadPolicy(spec, allowlistDir);
    return [loaded, `${loaded.list.entries.length} entries, ${loaded.list.critical.length} critical`];
  });
  const resolutions = await step(log, "resolving", async () => {
    const total = policy.names.length;
    const each = Math.ceil(total / PROGRESS_EVENTS);
    const onProgress = (done: number): void => {
      if (done % each === 0 || done === total) log({ event: "progress", step: "resolving", done, total });
    };
    const resolved = await resolveNames(policy.names, { files, onProgress });
    return [resolved, `${resolved.filter(({ addresses }) => addresses.length > 0).length} of ${total} names`];
  });
  const openings = collectOpenings({ list: policy.list, resolutions, githubRanges: policy.githubRanges });
  warn(log, "resolving", describeLosses(resolutions, openings));
  requireCritical(policy.list, openings, resolutions);

  const plan = planRules({ ...facts, ...openings });
  await step(log, "rules", async () => [await applyPlan(run, kernel, plan), describeSets(plan)]);
  await step(log, "validation", async () => {
    await verifyRules(run, kernel, plan);
    await validateReach({ user: spec.user, critical: policy.list.critical, resolutions });
    return [undefined, `${policy.list.critical.length} critical services answer, the canaries are refused`];
  });
  log({ event: "ready", text: describeReady(policy, kernel), ms: elapsed(started) });
}

const PROGRESS_EVENTS = 25;
const NO_POLICY: BoxPolicy = { list: { entries: [], removed: [], blocks: [], critical: [] }, names: [], githubRanges: [] };

function readFacts(spec: BoxSpec, files: ResolverFiles): Omit<PlanInput, "literal" | "learned"> {
  // Without a network there is nobody to ask.
  const resolvers = spec.mode === "none" ? [] : [...new Set([...files.servers, ...spec.dns.upstreams])];
  return { resolvers, published: spec.published, gateways: spec.gateways, subnets: readSubnets(), ssh: true };
}

/** Runs one named step and reports its begin, end or failure; the step returns its value and a word about it. */
async function step<T>(log: Log, name: string, action: () => Promise<[T, string]>): Promise<T> {
  const started = performance.now();
  log({ event: "start", step: name });
  try {
    const [value, detail] = await action();
    log({ event: "done", step: name, ms: elapsed(started), detail });
    return value;
  } catch (error) {
    throw new StepError(name, error);
  }
}

/** The step that stopped a start, with its cause. */
export class StepError extends Error {
  readonly step: string;

  constructor(step: string, cause: unknown) {
    super(cause instanceof KnownError ? cause.message : `unexpected: ${cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)}`, { cause });
    this.name = "StepError";
    this.step = step;
  }
}

function elapsed(started: number): number {
  return Math.round(performance.now() - started);
}

function warn(log: Log, name: string, texts: readonly string[]): void {
  for (const text of texts) log({ event: "warning", step: name, text });
}

function describeLosses(resolutions: readonly Resolution[], openings: Openings): string[] {
  const silent = resolutions.flatMap(({ name, addresses, failure }) => {
    if (failure === null || name.startsWith("agentbox-wildcard-probe.")) return [];
    return [addresses.length === 0 ? `${name} is not reachable: ${failure}` : `${name} may be missing addresses: ${failure}`];
  });
  const special = openings.refused.map(
    ({ name, address, kind }) => `${name} resolves to ${address} (${kind}), which stays closed; list the address itself to open it`,
  );
  return [...silent, ...special];
}

function requireCritical({ critical }: Pick<EffectiveList, "critical">, openings: Openings, resolutions: readonly Resolution[]): void {
  const complaints = critical.flatMap(({ name, port }) => {
    const resolution = resolutions.find((candidate) => candidate.name === name);
    const refused = openings.refused.filter((candidate) => candidate.name === name);
    if (resolution !== undefined && resolution.addresses.length > refused.length) return [];
    const why = refused.length > 0 ? `resolves only to special-purpose addresses (${refused[0]?.address})` : `does not resolve: ${resolution?.failure}`;
    return [
      {
        what: `the critical service ${name}:${port} ${why}`,
        expected: "a public address",
        fix: "check the network and the resolver, or take the name out of CRITICAL_SERVICES in allowlists/services.sh and run agentbox --rebuild",
      },
    ];
  });
  if (complaints.length > 0) throw new ResolveError(complaints);
}

function describeSets(plan: Plan): string {
  const count = plan.sets.reduce((sum, { entries }) => sum + entries.length, 0);
  const rules = plan.chains[4].reduce((sum, chain) => sum + chain.rules.length, 0);
  return `${count} addresses and ports in ${plan.sets.length} sets, ${rules} rules a family`;
}

function describeReady({ list, names }: BoxPolicy, kernel: Kernel): string {
  if (list.entries.length === 0) return "firewall on: no network at all";
  const families = kernel.ipv6 ? "IPv4 and IPv6" : "IPv4";
  return `firewall on: ${list.entries.length} entries (${names.length} names) may be reached by address over ${families}, everything else is refused; verified`;
}
