import { describe, expect, it } from "vitest";
import type { DnsBehaviours, HostBehaviours } from "../../lab/control-schema.ts";
import { startNamespaceLab, type NamespaceLab } from "../../lab/namespace.ts";
import { ADDRESS_WALL, type BoxOptions, NAME_WALL, runBox } from "./netns-box.ts";
import { parseOutcomes, reachArgv } from "./reach.ts";

// Cases 5 and 7: each step of a start is made to fail, and to be killed, in turn. Afterwards the agent has
// not run, and from inside the namespace nothing that was not open before can be reached.

const LIST = { allowed: ["github.com"], critical: ["github.com"] };
const AGENT = ["echo", "the agent runs"];
const FAIL = "#!/bin/sh\necho 'made to fail' >&2\nexit 3\n";

/** Fails from the `nth` call on; the count is kept in the box's own tmpfs. */
function failFrom(nth: number, tool: string): string {
  return `#!/bin/sh\necho x >>/run/calls\n[ "$(wc -l </run/calls)" -lt ${nth} ] && exec /run/sbin.real/${tool} "$@"\necho 'made to fail' >&2\nexit 3\n`;
}

/** Makes sets and answers, but takes no entry. */
const REFUSE_ADDS = `#!/bin/sh\nsed -u 's/^add .*/add agentbox-none 192.0.2.1,tcp:9/' | /run/sbin.real/ipset "$@"\n`;

describe("a step that fails", () => {
  const rows: [string, BoxOptions & { dns?: DnsBehaviours; hosts?: HostBehaviours }, string, number][] = [
    ["the sets, and nftables too", { replace: { ipset: FAIL, nft: FAIL } }, "kernel", 70],
    ["filling the sets", { replace: { ipset: failFrom(2, "ipset") } }, "resolver", 70],
    ["an entry that the kernel refuses", { replace: { ipset: REFUSE_ADDS } }, "resolver", 70],
    ["the list", { services: "ALLOWED_SERVICES=(\n" }, "allowlist", 78],
    ["the resolver", { dns: { "github.com": { rcode: "SERVFAIL" } } }, "resolving", 69],
    ["the critical service", { hosts: { "*": { tcp: "reset" } } }, "validation", 69],
    ["reading the rules back", { replace: { "iptables-save": failFrom(2, "iptables-save") } }, "validation", 70],
  ];

  it.each(rows)("(%s) leaves the network closed and the agent unstarted", async (_case, { dns, hosts, ...options }, step, exitCode) => {
    await using lab = await startNamespaceLab();
    if (dns !== undefined) await lab.control.setDns(dns);
    if (hosts !== undefined) await lab.control.setHosts(hosts);
    const run = await runBox(lab, { ...LIST, ...options, command: AGENT });
    expect(run.events.at(-1)).toMatchObject({ event: "failed", step, exitCode });
    expect(run).toMatchObject({ code: exitCode, stdout: "" });
    await lab.control.reset();
    await expectClosed(lab, step === "kernel" ? "as before" : "closed");
  });

  it.each([
    ["the IPv4 rules", "iptables-restore", 1, "close"],
    ["the IPv6 rules", "ip6tables-restore", 1, "close"],
    ["the redirect of IPv4", "iptables-restore", 2, "close"],
    ["the redirect of IPv6", "ip6tables-restore", 2, "close"],
  ])("(%s) leaves the network closed and the agent unstarted", async (_case, tool, nth, step) => {
    await using lab = await startNamespaceLab();
    const run = await runBox(lab, {
      ...LIST,
      spec: { policy: NAME_WALL },
      command: AGENT,
      replace: { [tool]: failFrom(nth, tool), nft: FAIL },
    });
    expect(run.events.at(-1)).toMatchObject({ event: "failed", step, exitCode: 70 });
    expect(run).toMatchObject({ code: 70, stdout: "" });
    if (nth > 1) await expectClosed(lab, "closed");
  });
});

describe("a start that is killed", () => {
  it.each([
    ...["kernel", "close", "allowlist", "resolver", "resolving", "validation"].map((step) => [step, "address", ADDRESS_WALL] as const),
    ...["close", "resolver", "validation"].map((step) => [step, "name", NAME_WALL] as const),
  ])("during %s is closed or was never begun, with enforcement %s", async (step, _enforcement, policy) => {
    await using lab = await startNamespaceLab();
    const run = await runBox(lab, {
      ...LIST,
      spec: { policy },
      command: AGENT,
      onEvent: (event, kill) => event.event === "start" && event.step === step && kill("SIGKILL"),
    });
    expect(run.stdout).toBe("");
    expect(run.events.some(({ event }) => event === "ready")).toBe(false);
    await expectClosed(lab, ["kernel", "close"].includes(step) ? "as before" : "closed");
  });
});

/** Targets with the family whose rules decide, and what a closed one answers. */
const TARGETS = [
  { target: "tcp:93.184.220.34:443", save: "iptables-save", closed: "ECONNREFUSED" },
  { target: "tcp:[2606:2800:220:3::34]:443", save: "ip6tables-save", closed: "ECONNREFUSED" },
  { target: "udp:8.8.8.8:53", save: "iptables-save", closed: "EPERM" },
];

/**
 * `as before`: a family in which no rule was made yet has nothing to be closed, and no agent to use it. The
 * families are closed one after the other, so a start may be killed between them.
 */
async function expectClosed(lab: NamespaceLab, state: "closed" | "as before"): Promise<void> {
  const { stdout } = await lab.exec(reachArgv(TARGETS.map(({ target }) => target)));
  const hasRules = async (save: string): Promise<boolean> => (await lab.exec([save, "-t", "filter"])).stdout.includes("AGENTBOX");
  const expected = await Promise.all(TARGETS.map(async ({ save, closed }) => (state === "as before" && !(await hasRules(save)) ? "connected" : closed)));
  expect(parseOutcomes(stdout).map(({ outcome }) => outcome)).toEqual(expected);
}
