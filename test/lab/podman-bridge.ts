import { mustRun, runCommand } from "./command.ts";
import type { EngineCommand } from "./docker-command.ts";
import type { LabNetwork } from "./docker-network.ts";

/**
 * Makes a podman bridge the lab's own. Podman cannot name another gateway than the host's bridge, so the
 * address is taken away from the host and the lab claims it: nothing of a box reaches the host then, let
 * alone beyond. Podman's masquerading would catch bridged packets where the host passes those through
 * iptables, and drop them for want of an address; one rule in front, marked with the lab's name, keeps them
 * out of it. Needs root; the bridge must exist, which it does from the network's first container on.
 */
export async function freePodmanBridge(engine: EngineCommand, { name, v4, v6 }: LabNetwork): Promise<void> {
  const bridge = (await engine.run(["network", "inspect", "--format", "{{.NetworkInterface}}", name])).trim();
  const families = [
    { program: "iptables", subnet: v4.subnet, address: `${v4.lab}/24` },
    { program: "ip6tables", subnet: v6.subnet, address: `${v6.lab}/64` },
  ];
  for (const { program, subnet, address } of families) {
    await mustRun(["ip", "addr", "del", address, "dev", bridge]);
    await mustRun([program, "-w", "-t", "nat", "-I", "POSTROUTING", "-s", subnet, "-o", bridge, "-m", "comment", "--comment", name, "-j", "ACCEPT"]);
  }
}

/** Removes the rules that `freePodmanBridge` made for a lab; absent ones are no error. */
export async function forgetPodmanBridge(name: string): Promise<void> {
  for (const program of ["iptables", "ip6tables"]) {
    const { stdout } = await runCommand([program, "-w", "-t", "nat", "-S", "POSTROUTING"]);
    for (const rule of stdout.split("\n").filter((line) => line.split(" ").includes(name))) {
      await runCommand([program, "-w", "-t", "nat", ...rule.replace(/^-A/, "-D").split(" ")]);
    }
  }
}
