import type { PolicyCommand } from "../args-policy.ts";
import type { Edge } from "../edge.ts";

/** Performs one command about the policy and returns its exit code. Each is loaded only when it is asked for. */
export async function answerPolicy(edge: Edge, command: PolicyCommand): Promise<number> {
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
    case "setup":
      return await (await import("./setup.ts")).setUp(edge, command.wish);
  }
}
