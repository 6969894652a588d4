import type { Address } from "../../policy/address.ts";
import { renderAllowCommand } from "../../policy/allow-command.ts";
import type { Decision } from "../../policy/decide.ts";
import type { Denial } from "../../policy/denial.ts";
import { type Host, parseHost } from "../../policy/host-name.ts";
import { isOpaque } from "../../policy/open-ports.ts";
import { renderRule } from "../../policy/policy.ts";
import type { DecisionLog, Tally } from "../log/decision-log.ts";
import type { ConnectionFacts } from "../log/line.ts";
import type { AccessPolicy } from "./access-policy.ts";
import { type Asked, judgeAddresses, judgeHost, type Verdict } from "./judgement.ts";
import type { Found, Lookup } from "./lookup.ts";

/** A place that may be dialled now. */
export type Admitted = {
  ok: true;
  /** Canonical. */
  host: Host;
  name: string;
  port: number;
  /** At least one, but where the site's proxy resolves. */
  addresses: readonly Address[];
  /** The owner says that neither TLS nor HTTP is spoken there. */
  opaque: boolean;
  /** Of the policy that judged it: another one judges anew. */
  epoch: number;
};

/** Refused by the policy, or a failure that is nobody's fault: `status` is that of HTTP. */
export type Outcome = Admitted | { ok: false; denial: Denial } | Failure;
export type Failure = { ok: false; denial?: undefined; status: 502 | 504; why: string };

type Held = { until: number; tally: Tally; admitted: Admitted };

/** RFC 9110 and RFC 5789. */
const KNOWN_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]);
/** Places held at a time; beyond that all are forgotten and judged again. */
const MAX_HELD = 20_000;

export type AccessParts = { policy: AccessPolicy; lookup: Lookup; log: DecisionLog };

/**
 * The one gate of all listeners: judges by the policy in force, resolves, judges the addresses, and writes
 * the decision down before anybody acts on it. In this order: disabled, host, use, resolve, address.
 */
export class Access {
  policy: AccessPolicy;
  readonly log: DecisionLog;
  private readonly lookup: Lookup;
  private readonly held = new Map<string, Held>();

  constructor({ policy, lookup, log }: AccessParts) {
    this.policy = policy;
    this.lookup = lookup;
    this.log = log;
  }

  /** Judges by this policy from now on. */
  replace(policy: AccessPolicy): void {
    this.policy = policy;
    this.held.clear();
  }

  /** Tells whether the TLS of a host is opened. */
  intercepts(host: string): boolean {
    const { intercept, passesThrough } = this.policy;
    if (!intercept) return false;
    const parsed = parseHost(host);
    return !parsed.ok || !passesThrough(parsed.value);
  }

  /** Judges what a client wants, at once where nothing has to be resolved. */
  admit(asked: Asked): Outcome | Promise<Outcome> {
    const key = asked.memo === undefined ? keyOf(asked) : (asked.memo.key ??= keyOf(asked));
    const held = this.held.get(key);
    const now = Date.now();
    if (held !== undefined && held.until > now && isPlain(asked, this.policy)) return this.record(held.tally, now) ?? held.admitted;
    const verdict = judgeHost(this.policy, asked);
    if (verdict.action === "deny") return this.refuse(asked, verdict.decision, []);
    const { host } = verdict;
    // Behind the site's proxy only that proxy knows where a name leads.
    if (host.kind === "address" || this.policy.upstream !== undefined) return this.finish({ asked, key, verdict, found: { ok: true, addresses: host.kind === "address" ? [host.address] : [], freshUntil: now + 60_000 } });
    const found = this.lookup(host.name);
    if (!(found instanceof Promise)) return this.finish({ asked, key, verdict, found });
    const { epoch } = this.policy;
    // A policy that came into force meanwhile judges it anew.
    return found.then((answer) => (this.policy.epoch === epoch ? this.finish({ asked, key, verdict, found: answer }) : this.admit(asked)));
  }

  /** Writes a refusal down and describes it: for what only shows later, such as another name inside a tunnel. */
  refuse(asked: ConnectionFacts, decision: Decision, addresses: readonly Address[]): { ok: false; denial: Denial } {
    const { host, port, reason, rule, detail } = decision;
    // Another flaw of a request to the same place is another refusal.
    const key = `${reason} ${detail ?? ""} ${tallyKeyOf(asked, decision)}`;
    this.log.count(this.log.tally(key, this.describe(asked, "deny", decision, addresses)), Date.now());
    const answer = renderAllowCommand({ host, port, reason, rule }, this.log.place);
    return { ok: false, denial: { host, port, reason: reason === "allowed" ? "proxy_disabled" : reason, rule: rule === undefined ? undefined : renderRule(rule), detail, answer } };
  }

  private finish({ asked, key, verdict, found }: { asked: Asked; key: string; verdict: Extract<Verdict, { host: Host }>; found: Found }): Outcome {
    const { action, decision, host } = verdict;
    if (!found.ok && found.refused !== undefined) return this.refuse(asked, { ...decision, action: "deny", ...found.refused }, []);
    if (!found.ok) return this.fail(asked, decision, found.why);
    const { kept, refused } = judgeAddresses(this.policy, verdict, found.addresses);
    if (kept.length === 0 && refused !== undefined) return this.refuse(asked, refused, found.addresses);
    if (kept.length === 0 && this.policy.upstream === undefined) return this.fail(asked, decision, "the name has no address");
    const port = asked.port;
    const admitted: Admitted = { ok: true, host, name: decision.host, port, addresses: kept, opaque: isOpaque(this.policy.policy, host, port), epoch: this.policy.epoch };
    const tally = this.log.tally(`${action} ${tallyKeyOf(asked, decision)}`, this.describe(asked, action, decision, kept));
    if (this.held.size >= MAX_HELD) this.held.clear();
    if (isPlain(asked, this.policy)) this.held.set(key, { until: found.freshUntil, tally, admitted });
    return this.record(tally, Date.now()) ?? admitted;
  }

  /** Counts a decision to let through; a log that cannot be written denies. */
  private record(tally: Tally, now: number): { ok: false; denial: Denial } | undefined {
    this.log.count(tally, now);
    const { failing } = this.log;
    if (failing === undefined) return undefined;
    const { host, connection } = tally.facts;
    return { ok: false, denial: { host, port: connection?.port ?? undefined, reason: "proxy_disabled", rule: undefined, detail: failing, answer: { advice: "make room for the log, or see why it cannot be written" } } };
  }

  private fail(asked: Asked, decision: Decision, why: string): Failure {
    const key = `failed ${asked.protocol} ${decision.host} ${asked.port} ${why}`;
    this.log.count(this.log.tally(key, { ...this.describe(asked, "allow", decision, []), detail: why }), Date.now());
    return { ok: false, status: 502, why };
  }

  private describe({ protocol, port, method, client }: ConnectionFacts, action: Verdict["action"], { host, reason, rule, detail }: Decision, addresses: readonly Address[]): Tally["facts"] {
    return { action, host, reason, rule, detail, type: null, addresses: addresses.map(({ text }) => text).join(" "), connection: { protocol, port, method, client: client === null ? null : { address: client.address ?? null, uid: client.uid, pid: client.pid, command: client.command } } };
  }
}

function keyOf({ protocol, method, host, port }: Asked): string {
  return `${protocol} ${method ?? ""} ${host} ${port}`;
}

/** What one line of the log is about: spellings of a host and made-up methods make no lines of their own. */
function tallyKeyOf({ protocol, method, port }: ConnectionFacts, { host }: Decision): string {
  return `${protocol} ${method === null || KNOWN_METHODS.has(method) ? (method ?? "") : "?"} ${host} ${port}`;
}

/** Whether nothing but host, port, protocol and method decides. */
function isPlain({ use }: Asked, { policy }: AccessPolicy): boolean {
  return (use.claims === undefined || use.claims.length === 0) && (policy.methods === "full" || (use.kind === "request" && use.upgrade !== true));
}
