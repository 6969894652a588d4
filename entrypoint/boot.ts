import type { BoxSpec } from "../policy/box-spec.ts";
import { applyPlan, closeNetwork, verifyRules } from "./apply.ts";
import type { RunCommand } from "./commands.ts";
import { checkCapabilities, probeKernel } from "./kernel.ts";
import { type BoxPolicy, loadPolicy } from "./load-policy.ts";
import type { Log } from "./log.ts";
import { checkMounts } from "./mounts.ts";
import { readSubnets, requireOwnNamespace } from "./namespace.ts";
import { collectOpenings } from "./openings.ts";
import { planRules, type PlanInput } from "../firewall/plan.ts";
import { resolveNames } from "./resolve.ts";
import { type ResolverFiles, readResolverFiles } from "./resolver-files.ts";
import { count, countProgress, describeLosses, describeProof, describeReady, describeSets, requireCritical } from "./report.ts";

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
  // Only now it is known that the engine lets root act as the agent.
  await requireMounts(spec);
  kernel = await step(log, "close", async () => [await closeNetwork(run, kernel, closed), "both families closed"]);
  warn(log, "kernel", kernel.warnings);

  const policy = await step(log, "allowlist", async () => {
    const loaded = spec.mode === "none" ? NO_POLICY : await loadPolicy(spec, allowlistDir);
    return [loaded, `${count(loaded.list.entries.length, "entry", "entries")}, ${loaded.list.critical.length} critical`];
  });
  // TLS takes a while to load; that happens while the resolver is being waited for.
  const validator = import("./validate.ts");
  const openings = await step(log, "resolving", async () => {
    const resolved = await resolveNames(policy.names, { files, onProgress: countProgress(log, policy.names.length) });
    const opened = collectOpenings({ list: policy.list, resolutions: resolved, githubRanges: policy.githubRanges });
    warn(log, "resolving", describeLosses(resolved, opened));
    requireCritical(policy.list, opened, resolved);
    const found = resolved.filter(({ addresses }) => addresses.length > 0).length;
    return [opened, `${found} of ${policy.names.length} names`];
  });

  const plan = planRules({ ...facts, ...openings });
  await step(log, "rules", async () => [await applyPlan(run, kernel, plan), describeSets(plan)]);
  await step(log, "validation", async () => {
    await verifyRules(run, kernel, plan);
    const { validateReach } = await validator;
    await validateReach({ user: spec.user, critical: policy.list.critical, reachable: openings.reachable });
    return [undefined, describeProof(policy.list.critical.length)];
  });
  log({ event: "ready", text: describeReady(policy, kernel), ms: elapsed(started) });
}

/** Stops the start of a box, with or without a firewall, that got another directory than the planned one. */
export async function requireMounts(spec: BoxSpec): Promise<void> {
  await checkMounts(spec).catch((error: unknown) => {
    throw new StepError("mounts", error);
  });
}

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

/** Names the step that stopped a start; the cause says why. */
export class StepError extends Error {
  readonly stepName: string;

  constructor(stepName: string, cause: unknown) {
    super(`${stepName} failed`, { cause });
    this.name = "StepError";
    this.stepName = stepName;
  }
}

function elapsed(started: number): number {
  return Math.round(performance.now() - started);
}

function warn(log: Log, name: string, texts: readonly string[]): void {
  for (const text of texts) log({ event: "warning", step: name, text });
}
