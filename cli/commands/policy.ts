import { ConfigError } from "../../policy/errors.ts";
import type { PolicyCommand } from "../args-policy.ts";
import type { Edge } from "../edge.ts";

/** A hook has an input, and answers whatever happens. */
type Answered = Exclude<PolicyCommand, { verb: "hook claude" }>;

/** Performs one command about the policy and returns its exit code. A configuration that is refused is told with what it means for the boxes that run. */
export async function answerPolicy(edge: Edge, command: Answered): Promise<number> {
  try {
    return await answer(edge, command);
  } catch (error) {
    if (error instanceof ConfigError && command.verb.startsWith("policy ")) await tellOngoing(edge);
    throw error;
  }
}

/** A mistake in the file changes no box, which its owner may fear or hope. */
async function tellOngoing({ host, say }: Edge): Promise<void> {
  const { findRunning } = await import("./policy-show.ts");
  for (const { record } of await findRunning(host, (await import("./project-policy.ts")).findProject(host))) {
    say(`session ${record.id} goes on with the policy that it has`);
  }
}

/** Each is loaded only when it is asked for. */
async function answer(edge: Edge, command: Answered): Promise<number> {
  switch (command.verb) {
    case "policy show":
      return await (await import("./policy-show.ts")).showPolicy(edge, command);
    case "policy explain":
      return await (await import("./policy-show.ts")).explainHost(edge, command);
    case "policy presets":
      return await (await import("./policy-show.ts")).showPresets(edge, command.preset);
    case "policy check":
      return await (await import("./policy-check.ts")).checkPolicy(edge, command);
    case "policy diff":
      return await (await import("./policy-diff.ts")).diffPolicy(edge, command.engine);
    case "policy trust":
      return await (await import("./policy-trust.ts")).trustPolicy(edge);
    case "policy apply":
      return await (await import("./policy-change.ts")).applyPreset(edge, command);
    case "policy allow":
      return await (await import("./policy-change.ts")).changePolicy(edge, { ...command, side: "allow" });
    case "policy deny":
      return await (await import("./policy-change.ts")).changePolicy(edge, { ...command, side: "deny" });
    case "policy suggest":
      return await (await import("./policy-suggest.ts")).suggestPolicy(edge, command);
    case "blocked":
      return await (await import("./blocked.ts")).showBlocked(edge, command);
    case "logs":
      return await (await import("./logs.ts")).showLogs(edge, command);
    case "logs stats":
      return await (await import("./logs-stats.ts")).showStatistics(edge, command);
    case "confirm list":
    case "confirm approve":
    case "confirm deny":
      return await (await import("./confirm.ts")).answerConfirm(edge, command);
    case "audit show":
    case "audit verify":
    case "audit summary":
      return await (await import("./audit.ts")).answerAudit(edge, command);
    case "mcp":
      return await (await import("./mcp.ts")).serveMcp(edge, command);
    case "preflight":
      return await (await import("./preflight.ts")).checkCommand(edge, command);
    case "proxy":
      return await (await import("./proxy.ts")).runProxy(edge, command);
    case "proxy ctl":
      return await (await import("./proxy-ctl.ts")).controlProxy(edge, command);
    case "proxy seatbelt-profile":
      return await (await import("./proxy-seatbelt.ts")).printSeatbeltProfile(edge, command);
    case "setup":
      return await (await import("./setup.ts")).setUp(edge, command.wish);
  }
}
