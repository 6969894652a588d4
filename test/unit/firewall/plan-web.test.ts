import { describe, expect, it } from "vitest";
import { planRules, type PlanInput } from "../../../firewall/plan.ts";
import { renderEmptySets } from "../../../firewall/render-ipset.ts";
import { renderIptables, renderIptablesNat } from "../../../firewall/render-iptables.ts";
import { renderNft } from "../../../firewall/render-nft.ts";

const ADDRESS: PlanInput = { literal: [], upstreams: ["172.17.0.1"], proxyUid: 64990, published: [], gateways: [], subnets: [], ssh: "listed", report: false, nameWall: undefined };
const NAME: PlanInput = { ...ADDRESS, nameWall: { siteProxy: [{ address: "10.0.0.8", port: 3128 }, { address: "fd00::8", port: 3128 }] } };
const NFLOG = "-m limit --limit 50/sec --limit-burst 200 -j NFLOG --nflog-prefix agentbox-refused --nflog-group 5";

describe("the rules of the name wall", () => {
  it("stand in OUTPUT around those that are there without it, in this order", () => {
    const without = rules(renderIptables(planRules(ADDRESS), 4, ""), "AGENTBOX-OUT");
    const lines = rules(renderIptables(planRules(NAME), 4, ""), "AGENTBOX-OUT");
    const added = lines.filter((line) => !without.includes(line));
    expect(lines.filter((line) => !added.includes(line))).toEqual(without);
    expect(added).toEqual([
      "-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -m conntrack --ctstate RELATED,ESTABLISHED -j REJECT --reject-with tcp-reset",
      "-d 127.0.0.1 -p tcp -m tcp --dport 64980 -j ACCEPT",
      "-d 127.0.0.1 -p tcp -m tcp --dport 64443 -j ACCEPT",
      "-d 10.0.0.8 -p tcp -m tcp --dport 3128 -m owner --uid-owner 64990 -j ACCEPT",
      `-d 10.0.0.8 -p tcp -m tcp --dport 3128 ${NFLOG}`,
      "-d 10.0.0.8 -p tcp -m tcp --dport 3128 -j REJECT --reject-with tcp-reset",
      "-p tcp -m tcp --dport 80 -j AGENTBOX-WEB",
      "-p tcp -m tcp --dport 443 -j AGENTBOX-WEB",
      `-p udp -m udp --dport 443 ${NFLOG}`,
      "-p udp -m udp --dport 443 -j REJECT --reject-with icmp-admin-prohibited",
    ]);
    // Established, then lo, then the rest, which is refused before SSH and the sets are asked.
    expect([added[0], "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT", "-o lo -j ACCEPT", ...added.slice(1), "-p tcp -m tcp --dport 22 -m set --match-set agentbox-literal-4 dst,dst -j ACCEPT"]).toEqual(
      lines.slice(lines.indexOf(added[0] ?? ""), lines.indexOf("-p tcp -m tcp --dport 22 -m set --match-set agentbox-literal-4 dst,dst -j ACCEPT") + 1),
    );
  });

  it("are the same for IPv6", () => {
    const lines = rules(renderIptables(planRules(NAME), 6, ""), "AGENTBOX-OUT");
    for (const line of [
      "-d ::1 -p tcp -m tcp --dport 64443 -j ACCEPT",
      "-d fd00::8 -p tcp -m tcp --dport 3128 -m owner --uid-owner 64990 -j ACCEPT",
      "-p tcp -m tcp --dport 443 -j AGENTBOX-WEB",
      "-p udp -m udp --dport 443 -j REJECT --reject-with icmp6-adm-prohibited",
    ]) {
      expect(lines).toContain(line);
    }
    expect(lines.join("\n")).not.toContain("10.0.0.8");
  });

  it("let the web pass for the proxy and for what is judged by address, and refuse it to all others, who are never named by what they are not", () => {
    const text = renderIptables(planRules(NAME), 6, "");
    expect(rules(text, "AGENTBOX-WEB")).toEqual([
      "-m owner --uid-owner 64990 -j RETURN",
      "-m set --match-set agentbox-literal-6 dst,dst -j RETURN",
      "-m set --match-set agentbox-direct-6 dst,dst -j RETURN",
      `-p tcp ${NFLOG}`,
      "-p tcp -j REJECT --reject-with tcp-reset",
    ]);
    expect(text).not.toContain("! --uid-owner");
  });

  it("refuse QUIC before report mode lets anything out", () => {
    const lines = rules(renderIptables(planRules({ ...NAME, report: true }), 4, ""), "AGENTBOX-OUT");
    expect(lines.indexOf("-p udp -m udp --dport 443 -j REJECT --reject-with icmp-admin-prohibited")).toBeLessThan(lines.indexOf("-j ACCEPT"));
    expect(lines.indexOf("-p tcp -m tcp --dport 443 -j AGENTBOX-WEB")).toBeLessThan(lines.indexOf("-j ACCEPT"));
  });

  it("need a set beside the learned ones, which a box that decides by addresses has not", () => {
    expect(renderEmptySets(planRules(NAME)).match(/create agentbox-(literal|learned|cut|direct)-[46] /g)).toHaveLength(8);
    expect(renderEmptySets(planRules(ADDRESS))).not.toContain("direct");
  });
});

describe("NAT for iptables-restore", () => {
  it("is one transaction that has its own chain and one jump at position 1, and touches no policy", () => {
    expect(renderIptablesNat(planRules(NAME), 4, "-A OUTPUT -j SOMEONE\n").split("\n")).toEqual([
      "*nat",
      ":AGENTBOX-REDIRECT - [0:0]",
      "-I OUTPUT 1 -j AGENTBOX-REDIRECT",
      "-A AGENTBOX-REDIRECT -m owner --uid-owner 64990 -j RETURN",
      "-A AGENTBOX-REDIRECT -o lo -j RETURN",
      "-A AGENTBOX-REDIRECT -m set --match-set agentbox-literal-4 dst,dst -j RETURN",
      "-A AGENTBOX-REDIRECT -m set --match-set agentbox-direct-4 dst,dst -j RETURN",
      "-A AGENTBOX-REDIRECT -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 64980",
      "-A AGENTBOX-REDIRECT -p tcp -m tcp --dport 443 -j REDIRECT --to-ports 64443",
      "COMMIT",
      "",
    ]);
  });

  it("removes the jumps that the saved rules show first", () => {
    const saved = ":AGENTBOX-REDIRECT - [0:0]\n-A OUTPUT -j AGENTBOX-REDIRECT\n-A OUTPUT -j AGENTBOX-REDIRECT\n";
    expect(renderIptablesNat(planRules(NAME), 6, saved).split("\n").slice(2, 5)).toEqual(["-D OUTPUT -j AGENTBOX-REDIRECT", "-D OUTPUT -j AGENTBOX-REDIRECT", "-I OUTPUT 1 -j AGENTBOX-REDIRECT"]);
  });

  it("is nothing where addresses decide, or what takes an earlier run's away, filter chain included", () => {
    const plan = planRules(ADDRESS);
    expect(renderIptablesNat(plan, 4, ":SOMEONE - [0:0]\n")).toBe("");
    const saved = ":AGENTBOX-WEB - [0:0]\n:AGENTBOX-REDIRECT - [0:0]\n-A OUTPUT -j AGENTBOX-REDIRECT\n";
    expect(renderIptablesNat(plan, 4, saved).split("\n")).toEqual(["*nat", ":AGENTBOX-REDIRECT - [0:0]", "-D OUTPUT -j AGENTBOX-REDIRECT", "-X AGENTBOX-REDIRECT", "COMMIT", ""]);
    expect(renderIptables(plan, 4, saved)).toContain("\n:AGENTBOX-WEB - [0:0]\n-X AGENTBOX-WEB\nCOMMIT\n");
    expect(renderIptables(plan, 4, "")).not.toContain("AGENTBOX-WEB");
  });
});

describe("the name wall for nftables", () => {
  it("is in the same transaction and table, ahead of others' NAT", () => {
    const text = renderNft(planRules(NAME));
    expect(text).toContain("  chain nat-output {\n    type nat hook output priority -101; policy accept;\n    meta nfproto ipv4 jump AGENTBOX-REDIRECT-4\n    meta nfproto ipv6 jump AGENTBOX-REDIRECT-6\n  }\n");
    expect(text).toContain("    meta l4proto tcp th dport 443 redirect to :64443\n");
    expect(text).toContain("    meta l4proto tcp th dport 443 jump AGENTBOX-WEB-6\n");
    expect(text).toContain("    meta l4proto tcp tcp flags & (fin | syn | rst | ack) == syn ct state established,related reject with tcp reset\n");
    expect(text.indexOf("chain AGENTBOX-WEB-4 {")).toBeLessThan(text.indexOf("jump AGENTBOX-WEB-4"));
    expect(text.match(/policy drop;/g)).toHaveLength(3);
    expect(text).not.toContain("skuid !=");
  });

  it("is not there where addresses decide", () => {
    expect(renderNft(planRules(ADDRESS))).not.toMatch(/type nat|redirect|REDIRECT|AGENTBOX-WEB|agentbox-direct/);
  });
});

function rules(text: string, chain: string): string[] {
  return text.split("\n").flatMap((line) => (line.startsWith(`-A ${chain} `) ? [line.slice(chain.length + 4)] : []));
}
