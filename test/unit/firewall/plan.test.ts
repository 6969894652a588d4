import { describe, expect, it } from "vitest";
import { planRules, type PlanInput } from "../../../firewall/plan.ts";
import { renderEmptySets, renderLiteralSets } from "../../../firewall/render-ipset.ts";
import { renderIptables } from "../../../firewall/render-iptables.ts";
import { renderNft, renderNftLiterals } from "../../../firewall/render-nft.ts";

const INPUT: PlanInput = {
  literal: [
    { range: "140.82.112.0/20", protocol: "tcp", port: 22 },
    { range: "140.82.112.0/20", protocol: "tcp", port: 443 },
    { range: "2606:50c0::/32", protocol: "tcp", port: 443 },
  ],
  upstreams: ["172.17.0.1", "fd00::53"],
  proxyUid: 64990,
  published: [{ port: 3000, protocol: "tcp" }],
  gateways: ["172.17.0.1"],
  subnets: ["172.17.0.2/16", "fd00::2/64"],
  ssh: "listed",
  report: false,
  nameWall: undefined,
};

const NFLOG = "-m limit --limit 50/sec --limit-burst 200 -j NFLOG --nflog-prefix agentbox-refused --nflog-group 5";

describe("the order of OUTPUT", () => {
  it("is the card's for IPv4", () => {
    expect(rules(renderIptables(planRules(INPUT), 4, ""), "AGENTBOX-OUT")).toEqual([
      "-o lo -p udp -m addrtype ! --src-type LOCAL -j DROP",
      "-p tcp -m set --match-set agentbox-cut-4 dst,dst -j REJECT --reject-with tcp-reset",
      "-m conntrack --ctstate INVALID -j DROP",
      `-d 127.0.0.11 -p udp -m udp --dport 53 ${NFLOG}`,
      "-d 127.0.0.11 -p udp -m udp --dport 53 -j REJECT --reject-with icmp-admin-prohibited",
      `-d 127.0.0.11 -p tcp -m tcp --dport 53 ${NFLOG}`,
      "-d 127.0.0.11 -p tcp -m tcp --dport 53 -j REJECT --reject-with tcp-reset",
      "-s 127.0.0.11 -p tcp -m conntrack ! --ctstate RELATED,DNAT -j REJECT --reject-with tcp-reset",
      "-s 127.0.0.11 -m conntrack ! --ctstate RELATED,DNAT -j REJECT --reject-with icmp-admin-prohibited",
      "-d 127.0.0.11 -m owner --uid-owner 64990 -j ACCEPT",
      `-d 127.0.0.11 ${NFLOG}`,
      "-d 127.0.0.11 -p tcp -j REJECT --reject-with tcp-reset",
      "-d 127.0.0.11 -j REJECT --reject-with icmp-admin-prohibited",
      "-d 172.17.0.1 -p udp -m udp --dport 53 -m owner --uid-owner 64990 -j ACCEPT",
      `-d 172.17.0.1 -p udp -m udp --dport 53 ${NFLOG}`,
      "-d 172.17.0.1 -p udp -m udp --dport 53 -j REJECT --reject-with icmp-admin-prohibited",
      "-d 172.17.0.1 -p tcp -m tcp --dport 53 -m owner --uid-owner 64990 -j ACCEPT",
      `-d 172.17.0.1 -p tcp -m tcp --dport 53 ${NFLOG}`,
      "-d 172.17.0.1 -p tcp -m tcp --dport 53 -j REJECT --reject-with tcp-reset",
      "-s 127.0.0.1 -o lo -p udp -m udp --sport 53 -m owner --uid-owner 64990 -j ACCEPT",
      "-s 127.0.0.1 -o lo -p udp -m udp --sport 53 -m limit --limit 50/sec --limit-burst 200 -j NFLOG --nflog-prefix agentbox-refused --nflog-group 5",
      "-s 127.0.0.1 -o lo -p udp -m udp --sport 53 -j REJECT --reject-with icmp-admin-prohibited",
      "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
      "-o lo -j ACCEPT",
      "-p tcp -m tcp --dport 22 -m set --match-set agentbox-literal-4 dst,dst -j ACCEPT",
      "-p tcp -m tcp --dport 22 -m set --match-set agentbox-learned-4 dst,dst -j ACCEPT",
      "-m set --match-set agentbox-literal-4 dst,dst -j ACCEPT",
      "-m set --match-set agentbox-learned-4 dst,dst -j ACCEPT",
      NFLOG,
      "-p tcp -j REJECT --reject-with tcp-reset",
      "-j REJECT --reject-with icmp-admin-prohibited",
    ]);
  });

  it("is the same for IPv6, with neighbour discovery and without routing headers", () => {
    expect(rules(renderIptables(planRules(INPUT), 6, ""), "AGENTBOX-OUT")).toEqual([
      "-m rt -j REJECT --reject-with icmp6-adm-prohibited",
      "-o lo -p udp -m addrtype ! --src-type LOCAL -j DROP",
      "-p tcp -m set --match-set agentbox-cut-6 dst,dst -j REJECT --reject-with tcp-reset",
      "-m conntrack --ctstate INVALID -j DROP",
      "-d fd00::53 -p udp -m udp --dport 53 -m owner --uid-owner 64990 -j ACCEPT",
      `-d fd00::53 -p udp -m udp --dport 53 ${NFLOG}`,
      "-d fd00::53 -p udp -m udp --dport 53 -j REJECT --reject-with icmp6-adm-prohibited",
      "-d fd00::53 -p tcp -m tcp --dport 53 -m owner --uid-owner 64990 -j ACCEPT",
      `-d fd00::53 -p tcp -m tcp --dport 53 ${NFLOG}`,
      "-d fd00::53 -p tcp -m tcp --dport 53 -j REJECT --reject-with tcp-reset",
      "-s ::1 -o lo -p udp -m udp --sport 53 -m owner --uid-owner 64990 -j ACCEPT",
      "-s ::1 -o lo -p udp -m udp --sport 53 -m limit --limit 50/sec --limit-burst 200 -j NFLOG --nflog-prefix agentbox-refused --nflog-group 5",
      "-s ::1 -o lo -p udp -m udp --sport 53 -j REJECT --reject-with icmp6-adm-prohibited",
      "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
      "-o lo -j ACCEPT",
      "-p ipv6-icmp -m icmp6 --icmpv6-type 133 -j ACCEPT",
      "-p ipv6-icmp -m icmp6 --icmpv6-type 135 -j ACCEPT",
      "-p ipv6-icmp -m icmp6 --icmpv6-type 136 -j ACCEPT",
      "-p tcp -m tcp --dport 22 -m set --match-set agentbox-literal-6 dst,dst -j ACCEPT",
      "-p tcp -m tcp --dport 22 -m set --match-set agentbox-learned-6 dst,dst -j ACCEPT",
      "-m set --match-set agentbox-literal-6 dst,dst -j ACCEPT",
      "-m set --match-set agentbox-learned-6 dst,dst -j ACCEPT",
      NFLOG,
      "-p tcp -j REJECT --reject-with tcp-reset",
      "-j REJECT --reject-with icmp6-adm-prohibited",
    ]);
  });

  it("closes port 22, in rule and set, when SSH is off", () => {
    const plan = planRules({ ...INPUT, ssh: "off" });
    expect(rules(renderIptables(plan, 4, ""), "AGENTBOX-OUT")).toContain(
      "-p tcp -m tcp --dport 22 -m set --match-set agentbox-literal-4 dst,dst -j REJECT --reject-with tcp-reset",
    );
    expect(renderLiteralSets(plan)).not.toContain("tcp:22");
  });
});

describe("what a document may change of the rules", () => {
  it("opens port 22 of public addresses only, when SSH may go anywhere", () => {
    const lines = rules(renderIptables(planRules({ ...INPUT, ssh: "any" }), 4, ""), "AGENTBOX-OUT");
    const open = lines.indexOf("-p tcp -m tcp --dport 22 -j ACCEPT");
    expect(open).toBeGreaterThan(lines.indexOf("-d 169.254.0.0/16 -p tcp -m tcp --dport 22 -j REJECT --reject-with tcp-reset"));
    expect(open).toBeGreaterThan(lines.indexOf("-d 10.0.0.0/8 -p tcp -m tcp --dport 22 -j REJECT --reject-with tcp-reset"));
    expect(lines).not.toContain("-j ACCEPT");
    expect(rules(renderIptables(planRules({ ...INPUT, ssh: "any" }), 6, ""), "AGENTBOX-OUT")).toContain("-d 2000::/3 -p tcp -m tcp --dport 22 -j ACCEPT");
  });

  it("lets everything public through in report mode, logged, but no resolver and nothing special", () => {
    const lines = rules(renderIptables(planRules({ ...INPUT, report: true }), 4, ""), "AGENTBOX-OUT");
    const open = lines.indexOf("-j ACCEPT");
    expect(lines[open - 1]).toContain("--nflog-prefix agentbox-report");
    for (const before of [
      "-p udp -m udp --dport 53 -j REJECT --reject-with icmp-admin-prohibited",
      "-p tcp -m tcp --dport 853 -j REJECT --reject-with tcp-reset",
      "-d 169.254.169.254 -j REJECT --reject-with icmp-admin-prohibited",
      "-d 192.168.0.0/16 -p tcp -j REJECT --reject-with tcp-reset",
      "-d 127.0.0.11 -j REJECT --reject-with icmp-admin-prohibited",
    ]) {
      expect(lines.slice(0, open)).toContain(before);
    }
    const six = rules(renderIptables(planRules({ ...INPUT, report: true }), 6, ""), "AGENTBOX-OUT");
    expect(six.indexOf("-d 2002::/16 -j REJECT --reject-with icmp6-adm-prohibited")).toBeGreaterThan(0);
    expect(six.indexOf("-d 2002::/16 -j REJECT --reject-with icmp6-adm-prohibited")).toBeLessThan(six.indexOf("-d 2000::/3 -j ACCEPT"));
    expect(six).not.toContain("-j ACCEPT");
  });

  it("lets nobody continue what the proxy asked a resolver, which the kernel takes for established", () => {
    const lines = rules(renderIptables(planRules(INPUT), 4, ""), "AGENTBOX-OUT");
    const established = lines.indexOf("-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT");
    for (const address of ["127.0.0.11", "172.17.0.1"]) {
      const refusal = lines.findLastIndex((line) => line.startsWith(`-d ${address} `) && line.includes("-j REJECT"));
      expect(refusal).toBeGreaterThan(lines.findLastIndex((line) => line.startsWith(`-d ${address} `) && line.includes("--uid-owner 64990 -j ACCEPT")));
      expect(refusal).toBeLessThan(established);
    }
  });
});

describe("INPUT", () => {
  it("opens a published port to the host and the outside, and not to siblings", () => {
    expect(rules(renderIptables(planRules(INPUT), 4, ""), "AGENTBOX-IN")).toEqual([
      "-m conntrack --ctstate INVALID -j DROP",
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

  it("builds the literal sets beside the live ones and swaps them, and leaves alone what was learned", () => {
    const literal = [INPUT.literal[0], INPUT.literal[0]].flatMap((entry) => (entry === undefined ? [] : [entry]));
    const text = renderLiteralSets(planRules({ ...INPUT, literal }));
    expect(text.split("\n").filter((line) => line.includes("literal-4"))).toEqual([
      "create agentbox-next-literal-4 hash:net,port family inet maxelem 65536 timeout 0",
      "destroy agentbox-next-literal-4",
      "create agentbox-next-literal-4 hash:net,port family inet maxelem 65536 timeout 0",
      "add agentbox-next-literal-4 140.82.112.0/20,tcp:22",
      "swap agentbox-next-literal-4 agentbox-literal-4",
      "destroy agentbox-next-literal-4",
    ]);
    expect(text).not.toMatch(/learned|cut/);
  });

  it("makes all six sets before any rule names one", () => {
    expect(renderEmptySets(planRules(INPUT)).match(/create agentbox-(literal|learned|cut)-[46] /g)).toHaveLength(6);
  });

  it("says the same to nftables in one transaction that replaces its own table only", () => {
    const text = renderNft(planRules(INPUT));
    expect(text).toContain("\n}\nflush table inet agentbox\ntable inet agentbox {\n");
    expect(text).toMatch(/ip daddr 172\.17\.0\.1 meta l4proto udp th dport 53 meta skuid 64990 accept\n.* log .*\n +ip daddr 172\.17\.0\.1 meta l4proto udp th dport 53 reject /);
    // A packet without a socket has no uid, and then nothing that nftables says of one holds.
    expect(text).not.toContain("skuid !=");
    expect(text).toContain("    ip saddr 127.0.0.11 ct state != related ct status & dnat == 0 reject with icmpx admin-prohibited\n");
    expect(renderNftLiterals(planRules(INPUT))).toContain(
      "flush set inet agentbox agentbox-literal-4; add element inet agentbox agentbox-literal-4 { 140.82.112.0/20 . tcp . 22, 140.82.112.0/20 . tcp . 443 }",
    );
    expect(text.match(/policy drop;/g)).toHaveLength(3);
    expect(text).not.toContain("flush ruleset");
    // Bounded as ipset's are, but for the owner's own; single addresses and blocks of the cut set apart.
    const sets = [...text.matchAll(/ {2}set (\S+-4(?:-blocks)?) \{\n {4}type \S+ \. inet_proto \. inet_service\n {4}(?:size (\d+)\n {4})?flags (\S+)\n {2}\}/g)].map(([, name, size, flags]) => `${name} ${size} ${flags}`);
    expect(sets).toEqual(expect.arrayContaining(["agentbox-literal-4 undefined interval,timeout", "agentbox-learned-4 65536 timeout", "agentbox-cut-4 65536 timeout", "agentbox-cut-4-blocks 65536 interval,timeout"]));
    expect(text).toContain("th dport @agentbox-cut-6 reject with tcp reset\n    meta l4proto tcp ip6 daddr . meta l4proto . th dport @agentbox-cut-6-blocks reject with tcp reset\n");
  });
});

function rules(text: string, chain: string): string[] {
  return text.split("\n").flatMap((line) => (line.startsWith(`-A ${chain} `) ? [line.slice(chain.length + 4)] : []));
}
