import { z } from "zod";
import { type AllowAnswer, commandOf, renderAllowCommand } from "./allow-command.ts";
import type { BoxPolicy } from "./box-policy.ts";
import { decide } from "./decide.ts";
import { renderSentence } from "./denial.ts";
import { explainQuestion } from "./explain.ts";
import { noteReach } from "./explain-reach.ts";
import { parseHost } from "./host-name.ts";
import { isOpaque } from "./open-ports.ts";
import { PREFLIGHT_MODES } from "./preflight-mode.ts";
import { type HostNeed, type Need, type SocketNeed, SSH_AGENT } from "./preflight-need.ts";
import { parseUnixSocket } from "./proxy-words.ts";
import { REASONS } from "./reason.ts";

const verdict = {
  /** The program that needs it. */
  program: z.string(),
  /** `report`: let through and written down. `depends`: on what only a run would know. */
  action: z.enum(["allow", "deny", "report", "depends"]),
  reason: z.enum(REASONS),
  detail: z.string().nullable(),
  /** The rule that decided, in canonical form, and where it was written. */
  rule: z.strictObject({ text: z.string(), origins: z.array(z.string()) }).nullable(),
  /** The command that would allow it, or one sentence where no command can. */
  command: z.string().nullable(),
  advice: z.string().nullable(),
};

/** What a command line needs and what the policy says of it: the answer of `agentbox preflight --json`. */
export const preflightSchema = z.strictObject({
  version: z.literal(1),
  mode: z.enum(PREFLIGHT_MODES),
  /** The running session whose policy counts; null where the next start's does. */
  session: z.string().nullable(),
  /** False where a box here would have no firewall, so that nothing is refused whatever the policy says. */
  enforced: z.boolean(),
  /** Whether something that it needs is refused: exit code 1. */
  refused: z.boolean(),
  needs: z.array(
    z.discriminatedUnion("kind", [
      z.strictObject({ kind: z.literal("host"), host: z.string(), port: z.int(), ...verdict }),
      z.strictObject({ kind: z.literal("socket"), socket: z.string(), ...verdict }),
    ]),
  ),
  notes: z.array(z.string()),
});

export type Preflight = z.infer<typeof preflightSchema>;
export type JudgedNeed = Preflight["needs"][number];
type HostVerdict = Extract<JudgedNeed, { kind: "host" }>;

/** What needs are judged by. */
export type PreflightContext = {
  box: Pick<BoxPolicy, "policy" | "report" | "ssh" | "enforcement" | "nameWall" | "passesThrough">;
  /** Why a box here has no network at all; undefined where it has one. */
  closed: string | undefined;
  /** `allow_unix_sockets` as it was written. */
  unixSockets: readonly string[];
  /** Whether boxes have a key of their own for ssh, so that they need no agent. */
  hasKey: boolean;
};

/** Judges each need by the enforcing code. A name is not resolved: where only its address decides, the answer is `depends`. */
export function judgeNeeds(needs: readonly Need[], context: PreflightContext): JudgedNeed[] {
  return needs.flatMap((need) => (need.kind === "host" ? judgeHost(need, context) : judgeSocket(need, context)));
}

function judgeHost(need: HostNeed, { box, closed }: PreflightContext): HostVerdict {
  const { program, port } = need;
  const explained = explainQuestion(box, { host: need.host, port });
  const { host, action, reason, detail, rule, command, advice } = explained;
  const answer: HostVerdict = { kind: "host", host, port, program, action, reason, detail, rule, command, advice };
  if (closed !== undefined) return { ...answer, action: "deny", reason: "not_allowed", detail: `a box here has no network at all (${closed})`, command: null, advice: "list the hosts that it needs in allow_hosts of [network]" };
  if (action === "allow") return { ...answer, ...judgeUse(need, box) };
  if (reason !== "not_allowed") return answer;
  if (box.report) return { ...answer, action: "report" };
  const asked = parseHost(need.host);
  const reach = asked.ok ? noteReach(box, { host: asked.value, port, decision: decide(box.policy, { host: asked.value, port }), addresses: [] }) : [];
  return reach.length === 0 ? answer : { ...answer, action: "depends", detail: reach.join("; "), command: null, advice: null };
}

/** What the name wall sees of a request on the web's ports may be refused although the host is allowed. */
function judgeUse({ host: text, port, web, method = "GET" }: HostNeed, { policy, enforcement, nameWall, passesThrough }: PreflightContext["box"]): Partial<HostVerdict> {
  const host = parseHost(text);
  if (web === undefined || enforcement !== "name" || (port !== 80 && port !== 443) || !host.ok || host.value.kind === "address" || isOpaque(policy, host.value, port)) return {};
  const intercepted = nameWall.intercept && !passesThrough(host.value);
  const seen = web === "http" || intercepted;
  const decision = decide(policy, { host: host.value, port, use: seen ? { kind: "request", method } : { kind: "tunnel", via: "tls", intercepted } });
  return decision.action === "allow" ? {} : { action: "deny", reason: decision.reason, detail: decision.detail ?? null, ...describeAnswer(renderAllowCommand(decision)) };
}

function describeAnswer(answer: AllowAnswer): Pick<HostVerdict, "command" | "advice"> {
  return { command: commandOf(answer), advice: "advice" in answer ? answer.advice : null };
}

const ENGINE_SOCKET = /docker|podman|containerd|crio|buildkit|nerdctl/i;

/** A key or a program of the box may serve in place of a socket that is not listed. */
function judgeSocket({ program, socket, sure }: SocketNeed, { unixSockets, hasKey }: PreflightContext): JudgedNeed[] {
  const isAgent = socket === SSH_AGENT;
  const answer = { kind: "socket", socket, program, rule: null, command: null } as const;
  const engine = !isAgent && ENGINE_SOCKET.test(socket);
  if (!engine && unixSockets.some((word) => isListed(word, socket))) return [{ ...answer, action: "allow", reason: "allowed", detail: null, advice: null }];
  if (isAgent && !sure && hasKey) return [];
  if (engine) return [{ ...answer, action: "deny", reason: "unix_socket_unsupported", detail: "it is a container engine's, which would give the agent the host", advice: "no box gets it: run this command on the host" }];
  if (!isAgent && !sure) return [{ ...answer, action: "depends", reason: "unix_socket_unsupported", detail: "a box has its own sockets, and of the machine's those in allow_unix_sockets", advice: null }];
  const advice = isAgent ? "make a key for boxes by agentbox ssh-init, or list ssh-agent in allow_unix_sockets of [network_proxy.policy]" : "list the socket in allow_unix_sockets of [network_proxy.policy]";
  return [{ ...answer, action: "deny", reason: "unix_socket_unsupported", detail: null, advice }];
}

function isListed(word: string, socket: string): boolean {
  const listed = parseUnixSocket(word);
  return listed.ok && (listed.value.kind === "ssh-agent" ? socket === SSH_AGENT : listed.value.path === socket);
}

/** One refused need as a sentence for whoever wanted to run it. */
export function renderRefusedNeed(need: JudgedNeed): string {
  const { reason, rule, detail, command, advice } = need;
  if (reason === "allowed") throw new Error("an allowed need is no refusal");
  const place = need.kind === "host" ? { host: need.host, port: need.port } : { host: need.socket, port: undefined };
  return renderSentence({ ...place, reason, rule: rule?.text, detail: detail ?? undefined, answer: command === null ? { advice: advice ?? "change the configuration" } : { command } });
}

/** One line a need: what the policy says, where to, which program, why, and what would allow it. */
export function renderNeed(need: JudgedNeed): string {
  const { action, program, reason, rule, detail, command, advice } = need;
  const parts = [
    ACTIONS[action].padEnd(7),
    need.kind === "host" ? `${need.host.includes(":") && !need.host.startsWith('"') ? `[${need.host}]` : need.host}:${need.port}` : need.socket,
    program,
    action === "allow" ? "" : reason,
    rule === null ? "" : `rule ${rule.text}${rule.origins.length === 0 ? "" : ` (${rule.origins.join(", ")})`}`,
    detail ?? "",
    command === null ? "" : `allow it: ${command}`,
    advice ?? "",
  ];
  return parts.filter((part) => part !== "").join("  ");
}

const ACTIONS: Readonly<Record<JudgedNeed["action"], string>> = { allow: "allowed", deny: "refused", report: "report", depends: "depends" };

