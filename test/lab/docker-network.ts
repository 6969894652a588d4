import { randomBytes, randomInt } from "node:crypto";
import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";
import { EngineError } from "../../policy/errors.ts";
import type { EngineCommand } from "./docker-command.ts";

/** The lab's private bridge: the engine holds `.1`, the lab plays the gateway at `.2`, boxes follow. */
export type LabNetwork = {
  name: string;
  v4: { subnet: string; lab: string };
  v6: { subnet: string; lab: string };
};

const ATTEMPTS = 12;

/**
 * Creates a bridge whose boxes have the lab as their default gateway for IPv4 and IPv6. It does not
 * masquerade and no host address is a box's gateway, so nothing of a box is routed beyond the lab. It is
 * not `--internal`: where the host passes bridged packets through iptables, the rules of an internal
 * network drop every packet for a public-looking address on its way to the lab.
 */
export async function createLabNetwork(engine: EngineCommand, name: string, labels: readonly string[]): Promise<LabNetwork> {
  let refusal = "";
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const network = drawSubnets(name);
    if (clashesWithHost(network.v4.subnet)) continue;
    const { exitCode, stderr } = await engine.attempt(["network", "create", ...createArgs(network, labels), name]);
    if (exitCode === 0) return network;
    refusal = stderr.trim();
    // Overlap with another network is a reason to draw again; anything else will not get better.
    if (!/overlap|already used|being used|conflict/i.test(refusal)) break;
  }
  throw new EngineError({ what: `lab: no network could be made: ${refusal}`, fix: "remove networks that nobody uses (docker network prune)" });
}

function createArgs({ v4, v6 }: LabNetwork, labels: readonly string[]): string[] {
  return [
    ["--driver", "bridge", "--ipv6"],
    ["--subnet", v4.subnet, "--gateway", firstAddress(v4.subnet)],
    ["--subnet", v6.subnet, "--gateway", firstAddress(v6.subnet)],
    ["--aux-address", `DefaultGatewayIPv4=${v4.lab}`, "--aux-address", `DefaultGatewayIPv6=${v6.lab}`],
    ["--opt", "com.docker.network.bridge.enable_ip_masquerade=false"],
    labels.flatMap((label) => ["--label", label]),
  ].flat();
}

function drawSubnets(name: string): LabNetwork {
  const third = randomInt(256);
  const unique = randomBytes(5).toString("hex");
  const prefix = `fd${unique.slice(0, 2)}:${unique.slice(2, 6)}:${unique.slice(6)}`;
  return {
    name,
    v4: { subnet: `172.31.${third}.0/24`, lab: `172.31.${third}.2` },
    v6: { subnet: `${prefix}::/64`, lab: ipaddr.parse(`${prefix}::2`).toString() },
  };
}

function firstAddress(subnet: string): string {
  return subnet.startsWith("fd") ? subnet.replace("::/64", "::1") : subnet.replace(".0/24", ".1");
}

function clashesWithHost(subnet: string): boolean {
  const prefix = subnet.replace(".0/24", ".");
  return Object.values(networkInterfaces()).some((entries) => entries?.some(({ address }) => address.startsWith(prefix)));
}
