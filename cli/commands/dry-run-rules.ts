import { planRules } from "../../firewall/plan.ts";
import { renderEmptySets, renderLiteralSets } from "../../firewall/render-ipset.ts";
import { renderIptables, renderIptablesNat } from "../../firewall/render-iptables.ts";
import { openRanges } from "../../policy/open-ports.ts";
import { PROXY_IDS } from "../../policy/reserved-ids.ts";
import type { PlannedBox } from "../session/plan-box.ts";

export type KernelText = { title: string; text: string };

/**
 * Renders what the box would feed to the kernel, by the box's own code: the sets with the addresses that the
 * owner wrote, and the rules of both families. What names resolve to joins the learned sets as they are asked for.
 */
export function renderKernelText({ planned, upstreams }: { planned: PlannedBox; upstreams: readonly string[] }): KernelText[] {
  const { network, policy, ports, gateways, subnets } = planned;
  if (!network.firewall) return [];
  const open = policy === undefined || network.mode === "none" ? [] : openRanges(policy.policy);
  const plan = planRules({
    literal: open.map(({ range, port }) => ({ range: range.text, protocol: "tcp", port })),
    upstreams,
    proxyUid: PROXY_IDS.uid,
    published: ports.map(({ container, protocol }) => ({ port: container, protocol })),
    gateways,
    subnets,
    ssh: policy?.ssh ?? "listed",
    report: policy?.report ?? false,
    nameWall: network.mode === "none" || policy?.enforcement !== "name" ? undefined : { siteProxy: planned.siteProxy.map((address) => ({ address, port: policy.nameWall.upstream?.port ?? 0 })) },
  });
  return [
    { title: "Sets, for ipset -exist restore", text: renderEmptySets(plan) },
    { title: "Addresses that were written, for ipset -exist restore", text: renderLiteralSets(plan) },
    { title: "Rules, for iptables-restore --noflush", text: renderIptables(plan, 4, "") },
    { title: "Rules, for ip6tables-restore --noflush", text: renderIptables(plan, 6, "") },
    ...(plan.redirect === undefined
      ? []
      : [
          { title: "NAT, for iptables-restore --noflush", text: renderIptablesNat(plan, 4, "") },
          { title: "NAT, for ip6tables-restore --noflush", text: renderIptablesNat(plan, 6, "") },
        ]),
  ];
}
