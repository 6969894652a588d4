import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startNamespaceLab, type NamespaceLab } from "../../lab/namespace.ts";
import { ADDRESS_WALL, NAME_WALL, runBox } from "./netns-box.ts";

// The two containers of the sidecar topology as their entrypoints see them: cases 24, 26a and decision 26.

const LIST = { allowed: ["github.com"], critical: ["github.com"] };
const NO_CAPABILITIES = "-all";

describe("the sidecar topology", () => {
  let lab: NamespaceLab;
  beforeAll(async () => {
    lab = await startNamespaceLab();
  });
  afterEach(() => lab.control.reset());
  afterAll(() => lab.stop());

  it.each([
    ["addresses", ADDRESS_WALL],
    ["names", NAME_WALL],
  ])("lets an agent start in the namespace of a holder, and a holder keep nothing but its proxy, where %s decide", async (_case, policy) => {
    let agent: Promise<Awaited<ReturnType<typeof runBox>>> | undefined;
    let processes = "";
    const holder = await runBox(lab, {
      ...LIST,
      spec: { role: "holder", command: [], policy },
      command: [],
      onEvent: (event, kill) => {
        if (event.event !== "ready") return;
        agent = (async () => {
          processes = await readProcesses(lab);
          return runBox(lab, { ...LIST, spec: { role: "agent", policy }, ids: { uid: 1000, gid: 1000 }, capabilities: NO_CAPABILITIES, command: ["sh", "-c", "id -u; grep -E '^(Cap|NoNew)' /proc/self/status | sort -u; curl -sS --cacert /etc/ssl/certs/ca-certificates.crt -o /dev/null -w '%{http_code}' https://github.com/"] });
        })().finally(() => kill("SIGKILL"));
      },
    });
    expect(holder.events.at(-1)).toMatchObject({ event: "ready" });
    expect(processes).toMatch(/^65534 +0000000000000000 .*sleep infinity$/m);
    const run = await agent;
    expect(run?.events.map(({ event }) => event)).toEqual(["start", "done", "ready"]);
    expect(run?.stdout).toBe(`1000\n${["CapAmb", "CapBnd", "CapEff", "CapInh", "CapPrm"].map((set) => `${set}:\t0000000000000000\n`).join("")}NoNewPrivs:\t1\n200`);
  });

  it("starts no agent in a namespace that has no walls", async () => {
    const open = await lab.addBox();
    const run = await runBox(lab, { ...LIST, spec: { role: "agent" }, ids: { uid: 1000, gid: 1000 }, capabilities: NO_CAPABILITIES, command: ["echo", "agent"] }, open);
    expect(run).toMatchObject({ code: 70, stdout: "" });
    expect(run.events.at(-1)).toMatchObject({ event: "failed", step: "gate", exitCode: 70 });
  });

  it("starts no agent where the web is not led to the proxy, although nothing is open", async () => {
    let agent: Promise<Awaited<ReturnType<typeof runBox>>> | undefined;
    await runBox(lab, {
      ...LIST,
      spec: { role: "holder", command: [], policy: NAME_WALL },
      onEvent: (event, kill) => {
        if (event.event !== "ready") return;
        agent = lab
          .exec(["iptables", "-t", "nat", "-F", "AGENTBOX-REDIRECT"])
          .then(() => runBox(lab, { ...LIST, spec: { role: "agent", policy: NAME_WALL }, ids: { uid: 1000, gid: 1000 }, capabilities: NO_CAPABILITIES, command: ["echo", "agent"] }))
          .finally(() => kill("SIGKILL"));
      },
    });
    const run = await agent;
    expect(run).toMatchObject({ code: 70, stdout: "" });
    expect(run?.events.at(-1)).toMatchObject({ event: "failed", step: "gate", text: expect.stringContaining("the name agentbox-probe.example.com, told to 198.51.100.1 port 443, met ECONNREFUSED") });
  });

  it("starts no agent where the walls are and the resolver is not", async () => {
    await runBox(lab, LIST);
    const run = await runBox(lab, { ...LIST, spec: { role: "agent" }, ids: { uid: 1000, gid: 1000 }, capabilities: NO_CAPABILITIES, command: ["echo", "agent"] });
    expect(run).toMatchObject({ code: 70, stdout: "" });
    expect(run.events.at(-1)).toMatchObject({ event: "failed", step: "gate", text: expect.stringContaining("example.com, which is not allowed, could not be asked for (ECONNREFUSED)") });
  });
});

/** `UID EFFECTIVE-CAPABILITIES COMMAND` of each process in the lab's box. */
async function readProcesses(lab: NamespaceLab): Promise<string> {
  // The entrypoint tells that it is ready just before it becomes the process that waits.
  for (let tries = 0; tries < 50; tries += 1) {
    const script = 'for pid in $(ip netns pids "$1"); do echo "$(awk \'/^Uid/{print $2}\' /proc/$pid/status) $(awk \'/^CapEff/{print $2}\' /proc/$pid/status) $(tr \'\\0\' \' \' </proc/$pid/cmdline | sed \'s/ $//\')"; done 2>/dev/null';
    const { stdout } = await lab.execInLab(["sh", "-c", script, "sh", lab.boxNamespace]);
    if (stdout.includes("sleep infinity")) return stdout;
  }
  return "";
}
