import type { BoxPolicy } from "../policy/box-policy.ts";
import { type BoxSpec, RESOLVER_ADDRESSES } from "../policy/box-spec.ts";
import { FirewallError } from "../policy/errors.ts";
import { PROXY_IDS } from "../policy/reserved-ids.ts";
import { closeNetwork, fillLiterals } from "./apply.ts";
import type { RunCommand } from "./commands.ts";
import { askNewKeeper } from "./keeper-client.ts";
import type { KeeperStart } from "./keeper/start-message.ts";
import { checkCapabilities, type Kernel, probeKernel } from "./kernel.ts";
import { loadPolicy } from "./load-policy.ts";
import type { Log } from "./log.ts";
import { checkMounts } from "./mounts.ts";
import { findEngineResolver, readSubnets, requireOwnNamespace } from "./namespace.ts";
import { planRules, type PlanInput } from "../firewall/plan.ts";
import { resolveNames } from "./resolve.ts";
import { type ResolverFiles, readResolverFiles } from "./resolver-files.ts";
import { count, countProgress, describeLosses, describeProof, describeReady, requireCritical } from "./report.ts";
import { type Started, startResolver, type Web } from "./start-proxy.ts";
import { verifyRules } from "./verify-rules.ts";

export type BootInput = { spec: BoxSpec; allowlistDir: string; run: RunCommand; log: Log };

/**
 * Brings the firewall up, step by step; returns only when it is in force and verified. A step that fails
 * throws, and everything up to there is closed: nothing opens before the last rule is in place.
 */
export async function boot(input: BootInput): Promise<void> {
  const { spec, run, log } = input;
  const started = performance.now();
  const files = readResolverFiles();
  const facts = readFacts(spec, files);
  const plan = planRules({ ...facts, literal: [] });

  let resolver: Promise<Started> | undefined;
  let kernel = await step(log, "kernel", async () => {
    checkCapabilities();
    requireOwnNamespace();
    // Two programs of their own, which come up beside the other steps. Without a network nobody is to be asked.
    if (spec.mode !== "none") resolver = startResolver(describeWeb(spec, facts));
    // Its failure is the resolver step's; until then it must not count as unhandled.
    await resolver?.catch(() => undefined);
    const probed = await probeKernel(run, plan);
    return [probed, `${probed.backend}, ${probed.ipv6 ? "IPv4 and IPv6" : "IPv4 only"}`];
  });
  // Only now it is known that the engine lets root act as the agent.
  await requireMounts(spec);
  kernel = await step(log, "close", async () => {
    const closed = await closeNetwork(run, kernel, plan);
    return [closed, `both families closed, ${plan.chains[4].reduce((sum, chain) => sum + chain.rules.length, 0)} rules a family`];
  });
  warn(log, "kernel", kernel.warnings);
  const box = resolver === undefined ? await openNothing(input, kernel, plan) : await openPolicy({ ...input, kernel, files, facts, resolver });

  await step(log, "validation", async () => {
    await verifyRules(run, kernel, plan);
    const { validateReach } = await import("./validate.ts");
    await validateReach({ user: spec.user, box: box?.policy, reachable: box?.reachable ?? new Map() });
    return [undefined, describeProof(box?.policy.list.critical.length ?? 0, box !== undefined)];
  });
  if (box !== undefined) await askFor("settle");
  log({ event: "ready", text: describeReady(box?.policy, kernel), ms: elapsed(started) });
}

/** Stops the start of a box, with or without a firewall, that got another directory than the planned one. */
export async function requireMounts(spec: BoxSpec): Promise<void> {
  await checkMounts(spec).catch((error: unknown) => {
    throw new StepError("mounts", error);
  });
}

async function openNothing({ run }: BootInput, kernel: Kernel, plan: ReturnType<typeof planRules>): Promise<undefined> {
  // What an earlier run left in the literal sets goes as well.
  await fillLiterals(run, kernel, plan);
}

type OpenInput = BootInput & { kernel: Kernel; files: ResolverFiles; facts: Facts; resolver: Promise<Started> };
type Opened = { policy: BoxPolicy; reachable: ReadonlyMap<string, readonly string[]> };

async function openPolicy({ spec, allowlistDir, log, kernel, files, facts, resolver }: OpenInput): Promise<Opened> {
  const { box, lists } = await step(log, "allowlist", async () => {
    const loaded = await loadPolicy(spec, allowlistDir);
    return [loaded, `${count(loaded.box.list.entries.length, "entry", "entries")}, ${loaded.box.list.critical.length} critical`];
  });
  warn(log, "allowlist", box.warnings);
  await step(log, "resolver", async () => {
    const start: KeeperStart = {
      session: spec.session,
      document: spec.policy,
      lists,
      hosts: Object.fromEntries(files.hosts),
      upstreams: [...facts.upstreams],
      engineResolver: findEngineResolver(),
      backend: kernel.backend,
    };
    const keeper = await resolver;
    keeper.tell(start);
    await askFor("await-ready", keeper.ended);
    return [undefined, `the box's own, asking ${facts.upstreams.join(", ") || "nobody"}`];
  });
  return step(log, "resolving", async () => {
    const resolved = await resolveNames(box.names, {
      files: { servers: [RESOLVER_ADDRESSES[4]], hosts: new Map() },
      onProgress: countProgress(log, box.names.length),
    });
    warn(log, "resolving", describeLosses(resolved));
    requireCritical(box.list, resolved);
    const found = resolved.filter(({ addresses }) => addresses.length > 0).length;
    const reachable = new Map(resolved.map(({ name, addresses }) => [name, addresses]));
    return [{ policy: box, reachable }, `${found} of ${box.names.length} names`];
  });
}

async function askFor(op: "await-ready" | "settle", ended?: AbortSignal): Promise<void> {
  const reply = await askNewKeeper({ op }, ended).catch((error: unknown) => {
    const what = error instanceof Error ? error.message : String(error);
    throw new FirewallError({ what: `the keeper did not come up: ${what}`, fix: "see keeper.log of the session; run agentbox doctor" }, { cause: error });
  });
  if (!reply.ok) throw new FirewallError(reply.complaints);
}

type Facts = Omit<PlanInput, "literal">;

function readFacts(spec: BoxSpec, files: ResolverFiles): Facts {
  const own: readonly string[] = Object.values(RESOLVER_ADDRESSES);
  const upstreams = [...new Set([...spec.dns.upstreams, ...files.servers])].filter((address) => !own.includes(address));
  return {
    // Without a network there is nobody to ask.
    upstreams: spec.mode === "none" ? [] : upstreams,
    proxyUid: PROXY_IDS.uid,
    published: spec.published,
    gateways: spec.gateways,
    subnets: readSubnets(),
    ssh: spec.policy.ssh,
    report: spec.policy.report,
    nameWall: describeNameWall(spec),
  };
}

/** Undefined where addresses alone decide, and where there is nothing to decide about. */
function describeNameWall({ mode, policy, siteProxy = [] }: BoxSpec): PlanInput["nameWall"] {
  if (mode === "none" || policy.enforcement !== "name") return undefined;
  const { upstream } = policy.nameWall;
  return { siteProxy: upstream === null ? [] : siteProxy.map((address) => ({ address, port: upstream.port })) };
}

function describeWeb({ policy: { nameWall } }: BoxSpec, facts: Facts): Web | undefined {
  return facts.nameWall && { ...nameWall, siteProxy: facts.nameWall.siteProxy.map(({ address }) => address) };
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
