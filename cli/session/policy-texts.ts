import type { BoxPolicy } from "../../policy/box-policy.ts";
import { renderPolicyText } from "../../policy/policy-text.ts";
import { viewPolicy } from "../../policy/policy-view.ts";
import type { Topology } from "../args-values.ts";
import type { NetworkDecision } from "./firewall-switch.ts";
import type { PolicyTexts } from "./visible-directory.ts";

export type TextsInput = { policy: BoxPolicy | undefined; mode: NetworkDecision["mode"]; topology: Topology; agent: string };

/** Renders what the agent may read about its policy. */
export function renderPolicyTexts({ policy, mode, topology, agent }: TextsInput): PolicyTexts {
  const shown = mode === "allowlist" && policy !== undefined ? policy : null;
  const view = viewPolicy(shown, { mode, topology, enforcement: policy?.enforcement ?? "name", agent });
  return { json: `${JSON.stringify(view, undefined, 2)}\n`, text: renderPolicyText(view) };
}
