import { setTimeout as sleep } from "node:timers/promises";
import { CONTROL_SOCKET, KEEPER_DIR } from "../../policy/box-spec.ts";
import type { DecisionEntry } from "../../policy/decision-record.ts";
import { ConfigError } from "../../policy/errors.ts";
import type { ControlReply, ControlRequest, KeeperMessage, KeeperStatus } from "../../policy/keeper-message.ts";
import type { PolicyDocument } from "../../policy/policy-document.ts";
import { listenForControl, refuse } from "./control-server.ts";
import { KernelPolicy } from "./kernel-policy.ts";
import type { Door } from "./listen.ts";
import { startPacketLog } from "./packet-log.ts";
import { describePacket, foldPackets } from "./packet-record.ts";
import { type Built, buildPolicy, compareRules, type HeldPolicy, refuseFixed } from "./policy-holder.ts";
import { ProxyLink, type ProxyQuestion } from "./proxy-link.ts";
import type { KeeperStart } from "./start-message.ts";
import { Watch } from "./watch.ts";

const PROXY_LIMIT_MS = 2000;
const READY_LIMIT_MS = 10_000;
/** A proxy that does not read is not waited for; it may still confirm in time. */
const GIVEN_LIMIT_MS = 200;
// setTimeout counts in 32 bits.
const MAX_TIMER_MS = 2_000_000_000;

type Refused = Extract<Built, { ok: false }>;
/** A document with the number it was offered under. */
type Offer = Pick<HeldPolicy, "version" | "document">;
type Offered = Offer & { built: Promise<Built> };

/** Holds the policy of a running box: judges what the proxy learned, writes the kernel's sets, replaces the policy as a whole. */
export class Keeper {
  private readonly start: KeeperStart;
  private readonly kernel: KernelPolicy;
  private readonly proxy: ProxyLink;
  private held: HeldPolicy;
  /** What the proxy was given and is not in force yet. */
  private offered: Offered | undefined;
  /** Numbers every policy that was offered, also those that were refused. */
  private version: number;
  private refusal: string | undefined;
  private packetTrouble: string | undefined;
  /** Of the proxy's state. */
  private readonly watch = new Watch();
  /** Changes of the policy come one after the other. */
  private turn: Promise<unknown> = Promise.resolve();
  private replacing: Promise<unknown> | undefined;
  private readonly learning = new Set<Promise<unknown>>();
  private expiry: NodeJS.Timeout | undefined;

  private constructor(start: KeeperStart, held: HeldPolicy) {
    this.start = start;
    this.held = held;
    this.version = held.version;
    this.kernel = new KernelPolicy({ backend: start.backend, enforcement: start.document.enforcement, hosts: new Map(Object.entries(start.hosts)), onFull: (detail) => this.tell("set-full", detail) });
    this.proxy = new ProxyLink({
      current: () => this.describe(this.offered ?? this.held),
      answer: (question) => this.answer(question),
      onChange: () => this.watch.notify(),
    });
  }

  /** Puts the first policy in force and then listens; throws ConfigError for a document that cannot be built. */
  static async open(start: KeeperStart, door: Door): Promise<Keeper> {
    const built = await buildPolicy(start.document, start.lists, 1);
    if (!built.ok) throw new ConfigError(built.complaints);
    const keeper = new Keeper(start, built.policy);
    // The proxy may build its policy meanwhile; what it learns is answered after the literals.
    keeper.proxy.open(door);
    const errors = await keeper.kernel.begin(built.policy.box);
    if (errors.length > 0) throw new Error(`the sets cannot be filled: ${errors.join("; ")}`);
    await listenForControl({ path: CONTROL_SOCKET, perform: (request) => keeper.perform(request), status: () => keeper.status() });
    keeper.scheduleExpiry();
    const record = foldPackets((packet, count) => keeper.proxy.record({ ...describePacket(packet, keeper.held.box, keeper.kernel.namesOf(packet.address)), count }));
    startPacketLog(`${KEEPER_DIR}/run`, record, (sentence) => (keeper.packetTrouble = sentence));
    return keeper;
  }

  private perform(request: ControlRequest): Promise<ControlReply> {
    switch (request.op) {
      case "status":
        return Promise.resolve(this.accept([], []));
      case "await-ready":
        return this.awaitReady();
      case "settle":
        return this.settle();
      case "replace":
        return this.inTurn(() => this.replace(request.document));
    }
  }

  /** The start is over: what an earlier run in this namespace learned goes, and from here on the log is the agent's. */
  private async settle(): Promise<ControlReply> {
    const errors = await this.kernel.settle();
    if (errors.length > 0) return this.reject(errors.map((what) => ({ what })));
    this.tell("start", "the walls are verified");
    return this.accept([], []);
  }

  private async awaitReady(): Promise<ControlReply> {
    const settled = await this.watch.until(READY_LIMIT_MS, () => {
      const { confirmed } = this.proxy;
      if (confirmed?.version !== this.held.version) return undefined;
      if (!confirmed.ok) return { ok: false, detail: confirmed.detail };
      return this.kernel.pinned(this.held.box) ? { ok: true, detail: "" } : undefined;
    });
    if (settled?.ok === true) return this.accept([], []);
    const what = settled === undefined ? "the resolver of the box does not serve the policy in time" : `the resolver refuses the policy: ${settled.detail}`;
    return this.reject([{ what, expected: "a resolver that serves the policy", fix: "see keeper.log and proxy.log of the session" }]);
  }

  /** All or nothing: built, taken by the proxy, in the kernel; whatever fails leaves the policy before in force. */
  private async replace(document: PolicyDocument): Promise<ControlReply> {
    const fixed = refuseFixed(this.held.document, document);
    if (fixed.length === 0) this.kernel.pins.forgetEmpty();
    const done = fixed.length > 0 ? { ok: false as const, complaints: fixed } : await this.putInForce(document, "cut");
    if (!done.ok) {
      this.refusal = `the last change was refused: ${done.complaints[0]?.what ?? "no reason given"}`;
      this.tell("policy-refused", this.refusal);
      return this.reject(done.complaints);
    }
    this.refusal = undefined;
    this.tell("policy-replaced", `version ${this.held.version}`, done);
    return this.accept(done.added, done.removed);
  }

  /**
   * The proxy is given the document first, so that both build it side by side. It may then know a policy before the kernel
   * does, or one that is refused here: what it learns by that waits, and is judged by what is in force then (`answer`).
   */
  private async putInForce(document: PolicyDocument, removed: "cut" | "close"): Promise<{ ok: true; added: string[]; removed: string[] } | Refused> {
    const before = this.held;
    const version = this.nextVersion();
    const given = Promise.race([this.proxy.offer(this.describe({ version, document })), sleep(GIVEN_LIMIT_MS)]);
    this.offered = { version, document, built: given.then(() => buildPolicy(document, this.start.lists, version)) };
    try {
      const next = await this.enforce(this.offered, removed);
      if (!next.ok) return next;
      this.held = next.policy;
      this.scheduleExpiry();
      return { ok: true, ...compareRules(before.box, next.policy.box) };
    } finally {
      this.offered = undefined;
      // The proxy may have taken what failed, or may do so late: it hears again what is in force.
      if (this.held === before) {
        this.held = { ...before, version: this.nextVersion() };
        void this.proxy.offer(this.describe(this.held));
      }
    }
  }

  /** Builds what the proxy was given, and brings it into the kernel when the proxy has it. */
  private async enforce(offered: Offered, removed: "cut" | "close"): Promise<Built> {
    const { version } = offered;
    const built = await offered.built;
    if (!built.ok) return built;
    // What was judged by the policy before is in the kernel before it is judged anew, which takes its time while the proxy builds.
    await Promise.allSettled(this.learning);
    const errors = await this.kernel.replace({ before: this.held.box, next: built.policy.box, removed, agreed: () => this.hearTaken(version) });
    if (errors.length === 0) return built;
    return { ok: false, complaints: errors.map((what) => ({ what, expected: "a policy that resolver and kernel take", fix: "the policy before stays in force; try again" })) };
  }

  /** Waits until the proxy has taken what it was offered; returns what speaks against it. */
  private async hearTaken(version: number): Promise<string[]> {
    const taken = await this.watch.until(PROXY_LIMIT_MS, () => (this.proxy.confirmed?.version === version ? this.proxy.confirmed : undefined));
    return taken?.ok === true ? [] : [taken?.detail ?? "the resolver did not take the policy in time"];
  }

  private async answer(question: ProxyQuestion): Promise<{ ok: boolean; detail: string }> {
    if (question.op === "pin") {
      const offered = await this.offered?.built;
      return this.kernel.pin([this.held.box, ...(offered?.ok === true ? [offered.policy.box] : [])], question.name, question.addresses);
    }
    // A proxy that has the next policy already may be ahead of the kernel.
    await this.replacing;
    const learning = this.kernel.learn(this.held.box, question.name, question.addresses);
    this.learning.add(learning);
    const errors = await learning.finally(() => this.learning.delete(learning));
    return { ok: errors.length === 0, detail: errors.join("; ") };
  }

  /** Builds the policy anew when the time of a word is over; connections that it allowed go on. */
  private scheduleExpiry(): void {
    clearTimeout(this.expiry);
    const { nextExpiry } = this.held.box;
    if (nextExpiry === undefined) return;
    const wait = Math.min(Math.max(nextExpiry - Date.now() + 1, 0), MAX_TIMER_MS);
    this.expiry = setTimeout(() => {
      void this.inTurn(async () => {
        const done = await this.putInForce(this.held.document, "close");
        if (done.ok) return this.tell("policy-replaced", "the time of an entry is over", done);
        this.refusal = `an entry whose time is over is still open: ${done.complaints[0]?.what ?? ""}`;
        this.expiry = setTimeout(() => this.scheduleExpiry(), PROXY_LIMIT_MS);
      });
    }, wait);
  }

  private inTurn<T>(action: () => Promise<T>): Promise<T> {
    const run = this.turn.then(action);
    const settled = run.then(
      () => undefined,
      () => undefined,
    );
    this.turn = settled;
    this.replacing = settled;
    return run;
  }

  private nextVersion(): number {
    this.version += 1;
    return this.version;
  }

  private describe({ version, document }: Offer): Extract<KeeperMessage, { op: "policy" }> {
    const { session, lists, hosts, upstreams, engineResolver } = this.start;
    return { op: "policy", version, session, document, lists, hosts, pins: this.kernel.pins.describe(), upstreams, engineResolver };
  }

  private tell(event: Extract<DecisionEntry, { kind: "event" }>["event"], detail: string, { added = [], removed = [] }: { added?: string[]; removed?: string[] } = {}): void {
    this.proxy.record({ kind: "event", event, detail, added, removed });
  }

  private status(): KeeperStatus {
    const absent = this.proxy.connected ? undefined : "the resolver is not running; it is being started again";
    const own = [absent, this.refusal, this.packetTrouble, this.kernel.trouble].filter((sentence) => sentence !== undefined);
    const { version, since } = this.held;
    return { version, since, degraded: [...own, ...this.proxy.degraded], learned: this.kernel.count(), proxyRestarts: this.proxy.restarts };
  }

  private accept(added: string[], removed: string[]): ControlReply {
    return { ok: true, status: this.status(), added, removed };
  }

  private reject(complaints: Refused["complaints"] | readonly { what: string }[]): ControlReply {
    return refuse([...complaints], this.status());
  }
}
