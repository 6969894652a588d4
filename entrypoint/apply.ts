import type { Family } from "../policy/address.ts";
import { FirewallError } from "../policy/errors.ts";
import { CommandError, type RunCommand } from "./commands.ts";
import { fallBackToNft, familiesOf, type Kernel, nameMissingFeatures, requireNoIpv6 } from "./kernel.ts";
import { renderLiteralSets } from "../firewall/render-ipset.ts";
import { renderIptables, renderIptablesNat } from "../firewall/render-iptables.ts";
import { renderNft, renderNftLiterals } from "../firewall/render-nft.ts";
import { FAMILIES, type Plan } from "../firewall/rule.ts";

const RESTORE: Readonly<Record<Family, readonly string[]>> = {
  4: ["iptables-restore", "--noflush"],
  6: ["ip6tables-restore", "--noflush"],
};

/**
 * Puts the final rules in force before anything is allowed, each family by one command that takes all or
 * nothing. A second run replaces the first without a packet being judged by neither, and what sets of an
 * earlier run hold stays until the keeper has its own. Returns the kernel to go on with: where the first rules show that the set match is missing, that is nftables.
 *
 * NAT comes last: the filter refuses whatever it should lead to the proxy and does not, so that a start that ends
 * in between, and one that goes from one enforcement to the other, leaves nothing open.
 *
 * Errors: FirewallError naming the missing feature.
 */
export async function closeNetwork(run: RunCommand, kernel: Kernel, closed: Plan): Promise<Kernel> {
  if (kernel.backend === "nft") return closeByNft(run, kernel, closed);
  try {
    for (const family of familiesOf(kernel)) await run(RESTORE[family], renderIptables(closed, family, kernel.saved[family]));
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    const missing = await nameMissingFeatures(run);
    if (missing.length === 0) throw refuse(error, "see the line above; nothing was opened");
    const fallback = await fallBackToNft(run, new Error(`the kernel lacks ${missing.join(", ")}`, { cause: error }), closed);
    return closeByNft(run, fallback, closed);
  }
  return leadWeb(run, kernel, closed);
}

/** Puts the NAT rules in force, or takes those of an earlier run away. */
async function leadWeb(run: RunCommand, kernel: Kernel, plan: Plan): Promise<Kernel> {
  const warnings: string[] = [];
  const redirected: Family[] = [];
  for (const family of familiesOf(kernel)) {
    const text = renderIptablesNat(plan, family, kernel.saved[family]);
    if (text === "") continue;
    try {
      await run(RESTORE[family], text);
      if (plan.redirect !== undefined) redirected.push(family);
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      if (family === 4) throw refuseNat(error);
      requireNoIpv6(error, "its web cannot be led to the proxy");
      warnings.push("IPv6 cannot be led to the proxy; IPv6 is switched off in this box, so nothing passes there");
    }
  }
  return { ...kernel, redirected, warnings: [...kernel.warnings, ...warnings] };
}

function refuseNat(cause: CommandError): FirewallError {
  return new FirewallError(
    {
      what: `the kernel cannot lead the web to the proxy: ${cause.message}`,
      expected: "the target REDIRECT (xt_REDIRECT, nf_nat)",
      fix: 'load these modules on the host: modprobe -a xt_REDIRECT nf_nat; or let addresses alone decide: enforcement = "address" in [network]',
    },
    { cause },
  );
}

async function closeByNft(run: RunCommand, kernel: Kernel, closed: Plan): Promise<Kernel> {
  await orRefuse(run(["nft", "-f", "-"], renderNft(closed)));
  return { ...kernel, redirected: closed.redirect === undefined ? [] : FAMILIES };
}

/**
 * Puts the literal entries of a plan in place of those in force; where the keeper runs, that is its work.
 *
 * Errors: FirewallError with the tool's own words; what was in force before stays.
 */
export async function fillLiterals(run: RunCommand, kernel: Kernel, plan: Plan): Promise<void> {
  if (kernel.backend === "nft") await orRefuse(run(["nft", "-f", "-"], `${renderNftLiterals(plan)}\n`));
  else await orRefuse(run(["ipset", "-exist", "restore"], renderLiteralSets(plan)));
}

async function orRefuse(command: Promise<string>): Promise<void> {
  try {
    await command;
  } catch (error) {
    throw refuse(error, "run agentbox doctor; nothing was opened");
  }
}

function refuse(error: unknown, fix: string): unknown {
  if (!(error instanceof CommandError)) return error;
  return new FirewallError({ what: `the firewall could not be applied: ${error.message}`, fix }, { cause: error });
}
