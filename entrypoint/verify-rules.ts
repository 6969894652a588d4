import type { Family } from "../policy/address.ts";
import { FirewallError } from "../policy/errors.ts";
import { renderChainRules } from "../firewall/render-nft.ts";
import { type Chain, FAMILIES, type Plan, REDIRECT_CHAIN } from "../firewall/rule.ts";
import type { RunCommand } from "./commands.ts";
import { familiesOf, type Kernel, SAVE } from "./kernel.ts";

/**
 * Reads the rules back and throws FirewallError unless they are in force: policies DROP, own chains first in their
 * hooks, every chain complete, and NAT where it is planned and only there.
 */
export async function verifyRules(run: RunCommand, kernel: Kernel, plan: Plan): Promise<void> {
  if (kernel.backend === "nft") verifyNft(await run(["nft", "list", "table", "inet", "agentbox"]), plan);
  else await Promise.all(familiesOf(kernel).map(async (family) => verifySaved(await run(SAVE[family]), { kernel, plan, family })));
}

function verifySaved(saved: string, { kernel, plan, family }: { kernel: Kernel; plan: Plan; family: Family }): void {
  const filter = readTable(saved, "filter");
  for (const hook of ["INPUT", "OUTPUT", "FORWARD"]) {
    if (!filter.some((line) => line.startsWith(`:${hook} DROP `))) throw unverified(`the policy of ${hook} (IPv${family}) is not DROP`);
  }
  for (const chain of plan.chains[family]) verifyChain(chain, filter, family);
  const nat = readTable(saved, "nat");
  if (plan.redirect !== undefined && kernel.redirected.includes(family)) verifyChain(plan.redirect[family], nat, family);
  else if (nat.some((line) => line.includes(REDIRECT_CHAIN))) throw unverified(`${REDIRECT_CHAIN} (IPv${family}) of an earlier run is still there`);
}

function verifyChain({ name, hook, rules }: Chain, lines: readonly string[], family: Family): void {
  if (hook !== undefined && lines.find((line) => line.startsWith(`-A ${hook} `)) !== `-A ${hook} -j ${name}`) {
    throw unverified(`${name} is not the first rule of ${hook} (IPv${family})`);
  }
  const count = lines.filter((line) => line.startsWith(`-A ${name} `)).length;
  if (count !== rules.length) throw unverified(`${name} (IPv${family}) has ${count} rules, not ${rules.length}`);
}

/** The lines of one table in what iptables-save prints of all. */
function readTable(saved: string, table: string): string[] {
  const lines = saved.split("\n");
  const start = lines.indexOf(`*${table}`);
  return start < 0 ? [] : lines.slice(start + 1, lines.indexOf("COMMIT", start));
}

function verifyNft(table: string, plan: Plan): void {
  const drops = table.match(/policy drop;/g)?.length ?? 0;
  if (drops !== 3) throw unverified(`nftables reports ${drops} chains with policy drop, not 3`);
  const counts = countNftRules(table);
  for (const family of FAMILIES) {
    for (const chain of [...plan.chains[family], ...(plan.redirect === undefined ? [] : [plan.redirect[family]])]) {
      const count = counts.get(`${chain.name}-${family}`) ?? 0;
      const wanted = renderChainRules(chain, family).length;
      if (count !== wanted) throw unverified(`${chain.name}-${family} has ${count} rules, not ${wanted}`);
    }
  }
  const led = counts.get("nat-output") ?? 0;
  const wanted = plan.redirect === undefined ? 0 : FAMILIES.length;
  if (led !== wanted) throw unverified(`nftables leads ${led} families to ${REDIRECT_CHAIN}, not ${wanted}`);
}

/** The number of rules of each chain in what \`nft list table\` prints. */
function countNftRules(table: string): ReadonlyMap<string, number> {
  const chains = table.matchAll(/^\tchain (\S+) \{\n((?:\t\t.*\n)*)\t\}$/gm);
  return new Map([...chains].map(([, name = "", body = ""]) => [name, body.split("\n").filter((line) => line !== "" && !line.startsWith("\t\ttype ")).length]));
}

function unverified(what: string): FirewallError {
  return new FirewallError({ what, expected: "the rules that were applied", fix: "something else programs this namespace; give the box its own network" });
}
