import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startNamespaceLab, type NamespaceLab } from "../../lab/namespace.ts";
import { runBox } from "./netns-box.ts";

// Case 22, the forged answers of 26a, and what a start leaves in the kernel and behind itself.

describe("a box", () => {
  let lab: NamespaceLab;
  beforeAll(async () => {
    lab = await startNamespaceLab();
  });
  afterAll(() => lab.stop());

  it("takes at most 2 MB of kernel memory for 1,000 names, and opens them all", async () => {
    const names = Array.from({ length: 1000 }, (_, index) => `n${String(index + 1).padStart(4, "0")}.lab-names.example`);
    const run = await runBox(lab, { allowed: names });
    expect(run.code).toBe(0);
    expect(run.events.find((event) => event.event === "done" && event.step === "resolving")).toMatchObject({ detail: "1000 of 1000 names" });
    const { stdout } = await lab.exec(["ipset", "list", "-terse"]);
    const sum = (label: string): number => [...stdout.matchAll(new RegExp(`^${label}: (\\d+)$`, "gm"))].reduce((total, [, count]) => total + Number(count), 0);
    expect(sum("Number of entries")).toBeGreaterThanOrEqual(2000);
    expect(sum("Size in memory")).toBeGreaterThan(0);
    expect(sum("Size in memory")).toBeLessThanOrEqual(2 * 1024 * 1024);
  });

  it("asks every name for both families, and keeps at most 200 questions in flight", async () => {
    await lab.control.reset();
    await lab.control.setDns({ "*": { delayMs: 50 } });
    const names = Array.from({ length: 300 }, (_, index) => `n${String(index + 1).padStart(4, "0")}.lab-names.example`);
    await runBox(lab, { allowed: names });
    const questions = (await lab.control.questions()).map((question) => ({ ...question, name: question.name.toLowerCase() })).filter(({ name }) => name.endsWith(".lab-names.example"));
    await lab.control.reset();
    expect(new Set(questions.map(({ name, type }) => `${name} ${type}`)).size).toBe(600);
    // Answers take 50 ms, so no more than 200 questions may fall into any 40 ms.
    const times = questions.map(({ at }) => new Date(at).getTime()).toSorted((a, b) => a - b);
    const busiest = Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + 40).length));
    expect(busiest).toBeLessThanOrEqual(200);
  });

  it("leaves no process behind but the agent itself", async () => {
    const run = await runBox(lab, { allowed: ["github.com"], command: ["sh", "-c", 'read -r children </proc/$$/task/$$/children; echo "[$children]"'] });
    expect(run.stdout).toBe("[]\n");
  });

  it("gets no answer that a process in it forges over lo in the resolver's name", async () => {
    const script = `
import socket, sys
IPV6_FREEBIND = 78
victim = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); victim.bind((sys.argv[1], 0)); victim.settimeout(1)
forger = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); forger.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
forger.bind((sys.argv[2], 5353))
try: forger.sendto(b"forged", victim.getsockname())
except OSError as error: print("send", type(error).__name__)
try: print(victim.recv(100).decode())
except TimeoutError: print("nothing")
honest = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); honest.sendto(b"honest", victim.getsockname()); print(victim.recv(100).decode())
`;
    const argv = ["/usr/bin/python3", "-c", script, lab.boxAddresses.v6, lab.dns.v6];
    const sibling = await lab.addBox();
    const control = await sibling.exec([...argv.slice(0, 3), sibling.addresses.v6, lab.dns.v6], { uid: 1000, gid: 1000 });
    expect(control.stdout).toBe("forged\nhonest\n");
    const run = await runBox(lab, { allowed: ["github.com"], command: argv });
    expect(run.stdout).not.toContain("forged");
    expect(run.stdout).toMatch(/honest\n$/);
  });

  it.each([
    ["an uplink with an MTU of 1400 (simulated by the veth's MTU)", ["ip", "link", "set", "dev", "eth0", "mtu", "1400"]],
    ["every tenth packet lost (simulated by a rule that drops them)", ["iptables", "-I", "INPUT", "-m", "statistic", "--mode", "nth", "--every", "10", "--packet", "4", "-j", "DROP"]],
  ])("completes a large TLS handshake over %s", async (_case, argv) => {
    const set = await lab.exec(argv);
    expect(set).toMatchObject({ exitCode: 0 });
    const run = await runBox(lab, {
      allowed: ["large-cert.lab-names.example"],
      command: ["curl", "-sS", "--cacert", "/etc/ssl/certs/ca-certificates.crt", "--max-time", "20", "https://large-cert.lab-names.example/"],
    });
    expect(run.stdout).toContain('"sni":"large-cert.lab-names.example"');
  });
});
