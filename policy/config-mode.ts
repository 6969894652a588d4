import type { Config, NetworkConfig } from "./config-schema.ts";

/** What `[network]` wants, and the setting that says so, as it can stand in a sentence. */
export type ModeWish = { mode: "none" | "allowlist" | "full"; why: string };

/**
 * Decides the network mode of a configuration. The seeds call three things a mode; all end here: `mode`, the
 * presets lockdown and unrestricted, `policy.mode` and the one rule that allows everything. Where they
 * contradict each other, the stricter one counts. Without [network] the network is open.
 */
export function decideMode({ network }: Config): ModeWish {
  if (network === undefined) return { mode: "full", why: "there is no [network] table" };
  if (network.mode === "none") return { mode: "none", why: 'mode = "none"' };
  if (network.presets?.includes("lockdown") === true) return { mode: "none", why: "the preset lockdown" };
  const open = findOpening(network);
  if (network.mode === "allowlist" && open !== undefined) return { mode: "allowlist", why: `mode = "allowlist", which counts before ${open}` };
  if (network.mode !== "full" && open === undefined) return { mode: "allowlist", why: network.mode === undefined ? "the [network] table" : 'mode = "allowlist"' };
  return { mode: "full", why: open ?? 'mode = "full"' };
}

/** The setting that opens everything, if there is one. */
function findOpening({ presets, policy, rules = [] }: NetworkConfig): string | undefined {
  if (presets?.includes("unrestricted") === true) return "the preset unrestricted";
  if (policy?.mode === "unrestricted") return 'policy.mode = "unrestricted"';
  return isOnlyOpenRule(rules) ? "the only rule, which allows *" : undefined;
}

/** Tells whether the rules are one that allows everything: no rule at all, but another way to write `mode = "full"`. */
export function isOnlyOpenRule(rules: NonNullable<NetworkConfig["rules"]>): boolean {
  const [only] = rules;
  return rules.length === 1 && only?.domain.trim() === "*" && only.action === "allow" && only.ports === undefined;
}
