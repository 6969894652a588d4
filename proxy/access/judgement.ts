import type { Address } from "../../policy/address.ts";
import { decide, type Decision } from "../../policy/decide.ts";
import { parseHost, type Host } from "../../policy/host-name.ts";
import { judgeUse, type Use } from "../../policy/use.ts";
import { judgeAddress } from "../dns/name-verdict.ts";
import type { ConnectionFacts } from "../log/line.ts";
import type { TrafficWindow } from "../log/traffic.ts";
import type { AccessPolicy } from "./access-policy.ts";

/** What a client wants: where to, as it wrote it, and what for. */
export type Asked = ConnectionFacts & { port: number; host: string; use: Use; memo?: AskedMemo };

/** What is worked out of a question each time, kept by who asks the same on and on. It holds no answer. */
type AskedMemo = { key: string | undefined; traffic: TrafficWindow | undefined };

/** `report`: refused by the policy, and let through because the box runs in report mode. */
export type Verdict = { action: "allow" | "report"; decision: Decision; host: Host } | { action: "deny"; decision: Decision };

/** Judges host, port and use; where the host leads is judged by `judgeAddresses`. */
export function judgeHost({ policy, enabled, report }: AccessPolicy, { host: text, port, use }: Asked): Verdict {
  const host = parseHost(text);
  const decision = decide(policy, { host: host.ok ? host.value : text, port, use });
  if (!host.ok) return { action: "deny", decision };
  if (!enabled) return { action: "deny", decision: { ...decision, action: "deny", reason: "proxy_disabled", rule: undefined, detail: undefined } };
  if (decision.action === "allow") return { action: "allow", decision, host: host.value };
  if (!report || decision.reason !== "not_allowed") return { action: "deny", decision };
  // Only that no rule allows the host is passed over: two names for one place are refused as ever.
  const misuse = judgeUse(policy.methods, { host: host.value, port }, use);
  if (misuse !== undefined) return { action: "deny", decision: { ...decision, ...misuse } };
  return { action: "report", decision, host: host.value };
}

/** What is decided of something that cannot be read, whoever it was meant for: nobody guesses. `host` is as much as is known. */
export function judgeUnreadable(host: string, port: number | undefined, detail: string): Decision {
  return { action: "deny", reason: "denied", host, port, rule: undefined, nearest: undefined, detail };
}

/** Judges where a host leads. `kept` may be dialled; where nothing is left, `refused` says why. */
export function judgeAddresses({ policy }: AccessPolicy, verdict: Extract<Verdict, { host: Host }>, addresses: readonly Address[]): { kept: readonly Address[]; refused: Decision | undefined } {
  const { action, decision, host } = verdict;
  const kept: Address[] = [];
  let refused: Decision | undefined;
  for (const address of addresses) {
    const answer = action === "report" ? judgeAddress({ policy }, verdict, address) : decide(policy, { host, port: decision.port, address });
    if (answer.action === "allow") kept.push(address);
    else refused ??= answer;
  }
  return { kept, refused };
}
