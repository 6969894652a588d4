import type { Family } from "../policy/address.ts";
import { FirewallError } from "../policy/errors.ts";
import { CommandError, type RunCommand } from "./commands.ts";
import { fallBackToNft, familiesOf, type Kernel, nameMissingFeatures } from "./kernel.ts";
import { renderLiteralSets } from "../firewall/render-ipset.ts";
import { renderIptables } from "../firewall/render-iptables.ts";
import { renderNft, renderNftLiterals } from "../firewall/render-nft.ts";
import type { Plan } from "../firewall/rule.ts";

const RESTORE: Readonly<Record<Family, readonly string[]>> = {
  4: ["iptables-restore", "--noflush"],
  6: ["ip6tables-restore", "--noflush"],
};
const SAVE: Readonly<Record<Family, readonly string[]>> = {
  4: ["iptables-save", "-t", "filter"],
  6: ["ip6tables-save", "-t", "filter"],
};

/**
 * Puts the final rules in force before anything is allowed, each family by one command that takes all or
 * nothing. A second run replaces the first without a packet being judged by neither, and what sets of an
 * earlier run hold stays until the keeper has its own. Returns the kernel to go on with: where the first rules show that the set match is missing, that is nftables.
 *
 * Errors: FirewallError naming the missing feature.
 */
export async function closeNetwork(run: RunCommand, kernel: Kernel, closed: Plan): Promise<Kernel> {
  if (kernel.backend === "nft") return closeByNft(run, kernel, closed);
  try {
    for (const family of familiesOf(kernel)) await run(RESTORE[family], renderIptables(closed, family, kernel.saved[family]));
    return kernel;
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    const missing = await nameMissingFeatures(run);
    if (missing.length === 0) throw refuse(error, "see the line above; nothing was opened");
    const fallback = await fallBackToNft(run, new Error(`the kernel lacks ${missing.join(", ")}`, { cause: error }));
    return closeByNft(run, fallback, closed);
  }
}

async function closeByNft(run: RunCommand, kernel: Kernel, closed: Plan): Promise<Kernel> {
  await orRefuse(run(["nft", "-f", "-"], renderNft(closed)));
  return kernel;
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

/**
 * Reads the rules back and throws FirewallError unless they are in force: policies DROP, the own chain
 * first and complete in each hook.
 */
export async function verifyRules(run: RunCommand, kernel: Kernel, plan: Plan): Promise<void> {
  if (kernel.backend === "nft") {
    const table = await run(["nft", "list", "table", "inet", "agentbox"]);
    const drops = table.match(/policy drop;/g)?.length ?? 0;
    if (drops !== 3) throw unverified(`nftables reports ${drops} chains with policy drop, not 3`);
    return;
  }
  await Promise.all(
    familiesOf(kernel).map(async (family) => {
      const saved = await run(SAVE[family]);
      const lines = saved.split("\n");
      for (const { name, hook, rules } of plan.chains[family]) {
        if (!lines.some((line) => line.startsWith(`:${hook} DROP `))) throw unverified(`the policy of ${hook} (IPv${family}) is not DROP`);
        if (lines.find((line) => line.startsWith(`-A ${hook} `)) !== `-A ${hook} -j ${name}`) {
          throw unverified(`${name} is not the first rule of ${hook} (IPv${family})`);
        }
        const count = lines.filter((line) => line.startsWith(`-A ${name} `)).length;
        if (count !== rules.length) throw unverified(`${name} (IPv${family}) has ${count} rules, not ${rules.length}`);
      }
      if (!lines.some((line) => line.startsWith(":FORWARD DROP "))) throw unverified(`the policy of FORWARD (IPv${family}) is not DROP`);
    }),
  );
}

function unverified(what: string): FirewallError {
  return new FirewallError({ what, expected: "the rules that were applied", fix: "something else programs this namespace; give the box its own network" });
}
