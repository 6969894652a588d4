import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startNamespaceLab, type NamespaceLab } from "../../lab/namespace.ts";
import { runBox } from "./netns-box.ts";
import { parseOutcomes, reachArgv } from "./reach.ts";

// The same plan through nftables, where ipset is missing or the kernel lacks the set match. This kernel has
// both, so the probe is given its result: the tools fail as they would.

const NO_IPSET = { ipset: "#!/bin/sh\necho 'ipset: Cannot open session to kernel.' >&2\nexit 1\n" };
const NO_SET_MATCH = {
  "iptables-restore": `#!/bin/sh
text=$(cat)
case "$text" in *"-m set "*) echo "Couldn't load match \\\`set'" >&2; exit 2 ;; esac
printf '%s\\n' "$text" | /run/sbin.real/iptables-restore "$@"
`,
};

const KERNEL_SETS = join(import.meta.dirname, "../../../entrypoint/keeper/kernel-sets.ts");

/** Fills the learned set to the brim and does what the keeper does then. */
const FULL_SET = `
const { openKernelSets } = await import(process.argv[1]);
const sets = openKernelSets("nft", () => undefined);
const change = (op, range, lifeS) => ({ op, set: "learned", range, port: 443, ...(op === "add" ? { lifeS } : {}) });
const add = (...ranges) => ranges.map((range) => change("add", range, 900));
await sets.change(add("96.0.0.1", "96.0.0.2", "96.0.0.3"));
let full = [];
for (let n = 0, size = 100; size >= 1; n += size) {
  const { errors } = await sets.addAll(add(...Array.from({ length: size }, (_, index) => "97.0." + (n + index >> 8) + "." + (n + index & 255))));
  if (errors.length > 0) [full, size] = [errors, size === 100 ? 1 : 0];
}
const absent = await sets.change([change("delete", "98.0.0.1")]);
const renewed = await sets.change([change("add", "96.0.0.3", 1800)]);
const both = await sets.change([change("delete", "98.0.0.1"), change("delete", "96.0.0.1"), change("delete", "96.0.0.2")]);
const room = await sets.addAll(add("98.0.0.2"));
console.log(JSON.stringify({ full: full[0], absent, renewed, both, room }));
process.exit();
`;

const ALLOWED = ["github.com", "chain.lab-names.example", "10.9.8.7:5432", "140.82.112.0/24"];
const TARGETS = {
  "tcp:140.82.112.3:443": "connected",
  "tcp:[2606:50c0:8000::3]:443": "connected",
  "tcp:93.184.216.8:443": "connected",
  "tcp:10.9.8.7:5432": "connected",
  "tcp:140.82.121.9:22": "connected",
  "udp:127.0.0.1:53": "connected",
  "udp:[::1]:53": "connected",
  "udp:172.30.0.1:53": "EPERM",
  "udp:[fd00:1ab::1]:53": "EPERM",
  "tcp:93.184.220.34:443": "ECONNREFUSED",
  "tcp:[2606:2800:220:3::34]:443": "ECONNREFUSED",
  "tcp:140.82.112.3:8443": "ECONNREFUSED",
  "tcp:169.254.169.254:80": "ECONNREFUSED",
  "udp:8.8.8.8:53": "EPERM",
  "udp:140.82.112.3:443": "EPERM",
};

describe.each([
  ["ipset cannot be used (injected)", NO_IPSET],
  ["the kernel lacks the set match (injected)", NO_SET_MATCH],
])("the firewall by nftables, when %s", (_case, replace) => {
  let lab: NamespaceLab;
  beforeAll(async () => {
    lab = await startNamespaceLab();
  });
  afterAll(() => lab.stop());

  it("gives the same verdicts", async () => {
    const run = await runBox(lab, { allowed: ALLOWED, critical: ["github.com"], replace, command: reachArgv(Object.keys(TARGETS)) });
    expect(run.stderr).toContain("nftables sets do its job");
    expect(run.stderr).toContain('"event":"ready"');
    expect(Object.fromEntries(parseOutcomes(run.stdout).map(({ target, outcome }) => [target, outcome]))).toEqual(TARGETS);
  });

  it("replaces its own table on a second run and leaves others alone", async () => {
    await lab.exec(["nft", "add table inet someone"]);
    const run = await runBox(lab, { allowed: ["example.com"], replace, command: reachArgv(["tcp:93.184.220.34:443", "tcp:140.82.112.3:443"]) });
    expect(run.code, `${run.stderr}${run.logs["keeper.log"] ?? ""}`).toBe(0);
    expect(parseOutcomes(run.stdout).map(({ outcome }) => outcome)).toEqual(["connected", "ECONNREFUSED"]);
    expect((await lab.exec(["nft", "list", "tables"])).stdout).toContain("table inet someone");
  });
});

it("takes elements out of a full set, those that are gone already too, renews those that are there, and says that there is no room for others", async () => {
  await using lab = await startNamespaceLab();
  await runBox(lab, { allowed: ALLOWED, critical: ["github.com"], replace: NO_IPSET });
  const most = Array.from({ length: 64_000 }, (_, index) => `95.0.${index >> 8}.${index & 255} . tcp . 443 timeout 1h`);
  await lab.exec(["nft", "-f", "-"], { input: `add element inet agentbox agentbox-learned-4 { ${most.join(", ")} }\n` });
  const { stdout, stderr } = await lab.exec([process.execPath, "--input-type=module", "-e", FULL_SET, KERNEL_SETS], { timeoutMs: 150_000 });
  expect(stderr).toBe("");
  expect(JSON.parse(stdout)).toEqual({ full: "the set is full: add element inet agentbox agentbox-learned-4", absent: [], renewed: [], both: [], room: { errors: [], taken: 1 } });
  const elements = (await lab.exec(["nft", "list", "set", "inet", "agentbox", "agentbox-learned-4"])).stdout;
  expect(elements).toMatch(/96\.0\.0\.3 \. tcp \. 443 timeout 30m/);
  expect(elements).not.toMatch(/96\.0\.0\.[12] /);
});

it("needs no IPv6 tables where IPv6 is off, and refuses to start where it is on", async () => {
  await using lab = await startNamespaceLab();
  const broken = { "ip6tables-save": "#!/bin/sh\necho 'no ip6tables here' >&2\nexit 3\n" };
  const on = await runBox(lab, { allowed: ALLOWED, replace: broken, command: ["echo", "agent"] });
  expect(on).toMatchObject({ code: 70, stdout: "" });
  expect(on.stderr).toContain("IPv6 is on in this box, but its tables cannot be programmed");
  await lab.exec(["sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1"]);
  const off = await runBox(lab, { allowed: ALLOWED, replace: broken, command: ["echo", "agent"] });
  expect(off).toMatchObject({ code: 0, stdout: "agent\n" });
  expect(off.stderr).toContain("IPv6 is switched off in this box");
});
