import { describe, expect, it } from "vitest";
import { planRules, type PlanInput } from "../../../firewall/plan.ts";
import { renderEmptySets, renderFilledSets } from "../../../firewall/render-ipset.ts";
import { renderIptables } from "../../../firewall/render-iptables.ts";
import { renderNft } from "../../../firewall/render-nft.ts";

const INPUT: PlanInput = {
  literal: [
    { range: "140.82.112.0/20", protocol: "tcp", port: 22 },
    { range: "140.82.112.0/20", protocol: "tcp", port: 443 },
    { range: "2606:50c0::/32", protocol: "tcp", port: 443 },
  ],
  learned: [
    { range: "93.184.216.34", protocol: "tcp", port: 443 },
    { range: "93.184.216.34", protocol: "tcp", port: 443 },
    { range: "2606:2800:220::1", protocol: "tcp", port: 443 },
  ],
  resolvers: ["172.17.0.1", "fd00::53"],
  published: [{ port: 3000, protocol: "tcp" }],
  gateways: ["172.17.0.1"],
  subnets: ["172.17.0.2/16", "fd00::2/64"],
  ssh: true,
};

describe("the order of OUTPUT", () => {
  it("is the card's for IPv4", () => {
    expect(rules(renderIptables(planRules(INPUT), 4, ""), "AGENTBOX-OUT")).toEqual([
      "-o lo -p udp -m addrtype ! --src-type LOCAL -j DROP",
      "-p tcp -m set --match-set agentbox-cut-4 dst,dst -j REJECT --reject-with tcp-reset",
      "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
      "-o lo -j ACCEPT",
      "-d 172.17.0.1 -p udp -m udp --dport 53 -j ACCEPT",
      "-d 172.17.0.1 -p tcp -m tcp --dport 53 -j ACCEPT",
      "-p tcp -m tcp --dport 22 -m set --match-set agentbox-literal-4 dst,dst -j ACCEPT",
      "-p tcp -m tcp --dport 22 -m set --match-set agentbox-learned-4 dst,dst -j ACCEPT",
      "-m set --match-set agentbox-literal-4 dst,dst -j ACCEPT",
      "-m set --match-set agentbox-learned-4 dst,dst -j ACCEPT",
      "-p tcp -j REJECT --reject-with tcp-reset",
      "-j REJECT --reject-with icmp-admin-prohibited",
    ]);
  });

  it("is the same for IPv6, with neighbour discovery and without routing headers", () => {
    expect(rules(renderIptables(planRules(INPUT), 6, ""), "AGENTBOX-OUT")).toEqual([
      "-m rt -j REJECT --reject-with icmp6-adm-prohibited",
      "-o lo -p udp -m addrtype ! --src-type LOCAL -j DROP",
      "-p tcp -m set --match-set agentbox-cut-6 dst,dst -j REJECT --reject-with tcp-reset",
      "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
      "-o lo -j ACCEPT",
      "-p ipv6-icmp -m icmp6 --icmpv6-type 133 -j ACCEPT",
      "-p ipv6-icmp -m icmp6 --icmpv6-type 135 -j ACCEPT",
      "-p ipv6-icmp -m icmp6 --icmpv6-type 136 -j ACCEPT",
      "-d fd00::53 -p udp -m udp --dport 53 -j ACCEPT",
      "-d fd00::53 -p tcp -m tcp --dport 53 -j ACCEPT",
      "-p tcp -m tcp --dport 22 -m set --match-set agentbox-literal-6 dst,dst -j ACCEPT",
      "-p tcp -m tcp --dport 22 -m set --match-set agentbox-learned-6 dst,dst -j ACCEPT",
      "-m set --match-set agentbox-literal-6 dst,dst -j ACCEPT",
      "-m set --match-set agentbox-learned-6 dst,dst -j ACCEPT",
      "-p tcp -j REJECT --reject-with tcp-reset",
      "-j REJECT --reject-with icmp6-adm-prohibited",
    ]);
  });

  it("closes port 22, in rule and set, when SSH is off", () => {
    const plan = planRules({ ...INPUT, ssh: false });
    expect(rules(renderIptables(plan, 4, ""), "AGENTBOX-OUT")).toContain(
      "-p tcp -m tcp --dport 22 -m set --match-set agentbox-literal-4 dst,dst -j REJECT --reject-with tcp-reset",
    );
    expect(renderFilledSets(plan)).not.toContain("tcp:22");
  });
});

describe("INPUT", () => {
  it("opens a published port to the host and the outside, and not to siblings", () => {
    expect(rules(renderIptables(planRules(INPUT), 4, ""), "AGENTBOX-IN")).toEqual([
      "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
      "-i lo -j ACCEPT",
      "-s 172.17.0.1 -p tcp -m tcp --dport 3000 -j ACCEPT",
      "-s 172.17.0.2/16 -p tcp -m tcp --dport 3000 -j REJECT --reject-with tcp-reset",
      "-p tcp -m tcp --dport 3000 -j ACCEPT",
      "-p tcp -j REJECT --reject-with tcp-reset",
      "-j REJECT --reject-with icmp-admin-prohibited",
    ]);
  });
});

describe("restore text", () => {
  it("drops by policy, empties only own chains and jumps at position 1", () => {
    const lines = renderIptables(planRules(INPUT), 4, "-A OUTPUT -j SOMEONE\n").split("\n");
    expect(lines.slice(0, 8)).toEqual([
      "*filter",
      ":INPUT DROP [0:0]",
      ":FORWARD DROP [0:0]",
      ":OUTPUT DROP [0:0]",
      ":AGENTBOX-OUT - [0:0]",
      ":AGENTBOX-IN - [0:0]",
      "-I OUTPUT 1 -j AGENTBOX-OUT",
      "-I INPUT 1 -j AGENTBOX-IN",
    ]);
    expect(lines.slice(-2)).toEqual(["COMMIT", ""]);
    expect(lines.filter((line) => line === "COMMIT")).toHaveLength(1);
  });

  it("removes as many stale jumps as the saved rules show, and no more", () => {
    const saved = "-A OUTPUT -j SOMEONE\n-A OUTPUT -j AGENTBOX-OUT\n-A OUTPUT -j AGENTBOX-OUT\n";
    const lines = renderIptables(planRules(INPUT), 4, saved).split("\n");
    expect(lines.filter((line) => line === "-D OUTPUT -j AGENTBOX-OUT")).toHaveLength(2);
    expect(lines.filter((line) => line === "-D INPUT -j AGENTBOX-IN")).toHaveLength(0);
  });

  it("builds each set beside the live one and swaps it, once per distinct entry", () => {
    const text = renderFilledSets(planRules(INPUT));
    expect(text.split("\n").filter((line) => line.includes("learned-4"))).toEqual([
      "create agentbox-learned-4 hash:net,port family inet maxelem 65536 timeout 0",
      "create agentbox-next-learned-4 hash:net,port family inet maxelem 65536 timeout 0",
      "flush agentbox-next-learned-4",
      "add agentbox-next-learned-4 93.184.216.34,tcp:443",
      "swap agentbox-next-learned-4 agentbox-learned-4",
      "destroy agentbox-next-learned-4",
    ]);
  });

  it("makes all six sets before any rule names one", () => {
    expect(renderEmptySets(planRules(INPUT)).match(/create agentbox-(literal|learned|cut)-[46] /g)).toHaveLength(6);
  });

  it("says the same to nftables in one transaction that replaces its own table only", () => {
    const text = renderNft(planRules(INPUT));
    expect(text.startsWith("table inet agentbox {}\ndelete table inet agentbox\ntable inet agentbox {\n")).toBe(true);
    expect(text).toContain("elements = { 140.82.112.0/20 . tcp . 22, 140.82.112.0/20 . tcp . 443 }");
    expect(text.match(/policy drop;/g)).toHaveLength(3);
    expect(text).not.toContain("flush ruleset");
  });
});

function rules(text: string, chain: string): string[] {
  return text.split("\n").flatMap((line) => (line.startsWith(`-A ${chain} `) ? [line.slice(chain.length + 4)] : []));
}
