import type { BoxPolicy } from "../../policy/box-policy.ts";
import { commandOf, renderAllowCommand } from "../../policy/allow-command.ts";
import { decide } from "../../policy/decide.ts";
import type { DecisionEntry } from "../../policy/decision-record.ts";
import { renderRule } from "../../policy/policy.ts";
import type { LoggedPacket } from "./packet-log.ts";

const WINDOW_MS = 10_000;
const MAX_KEYS = 2000;

/** Makes the entry of the decision log for a packet. `names` are those that led to the address, as far as the keeper has seen. */
export function describePacket(packet: LoggedPacket, box: BoxPolicy, names: readonly string[]): Extract<DecisionEntry, { kind: "decision" }> {
  const { address, port, transport, verdict, uid } = packet;
  const decision = decide(box.policy, { host: address, port: port ?? undefined });
  const reason = decision.action === "allow" ? "not_allowed" : decision.reason;
  // Only TCP can be allowed, and a name is better advice than an address that may change.
  const hint = transport === "tcp" && port !== null ? commandOf(renderAllowCommand({ host: names[0] ?? address, port, reason, rule: decision.rule })) : null;
  const led = names.length === 0 ? null : `an address of ${names.slice(0, 3).join(", ")}`;
  return {
    kind: "decision",
    protocol: "address",
    host: address,
    port,
    type: transport,
    addresses: [],
    action: verdict === "report" ? "report" : "deny",
    reason,
    rule: decision.rule === undefined ? null : renderRule(decision.rule),
    source: null,
    detail: [led, decision.detail].filter((part) => part !== null && part !== undefined).join("; ") || null,
    hint,
    client: { uid, pid: null, command: null },
    count: 1,
  };
}

/** Hands the first packet of a kind on at once, and those that repeat it within 10 s as one, with their number. */
export function foldPackets(emit: (packet: LoggedPacket, count: number) => void): (packet: LoggedPacket) => void {
  const repeats = new Map<string, number>();
  return (packet) => {
    const key = [packet.verdict, packet.transport, packet.address, packet.port, packet.uid].join(" ");
    const count = repeats.get(key);
    if (count !== undefined) return void repeats.set(key, count + 1);
    if (repeats.size >= MAX_KEYS) return;
    repeats.set(key, 0);
    emit(packet, 1);
    setTimeout(() => {
      const further = repeats.get(key) ?? 0;
      repeats.delete(key);
      if (further > 0) emit(packet, further);
    }, WINDOW_MS).unref();
  };
}
