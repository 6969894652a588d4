import { randomBytes, randomInt } from "node:crypto";
import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";
import { EngineError } from "../../policy/errors.ts";
import type { EngineCommand, EngineName } from "./docker-command.ts";

/** The lab's private bridge; `lab` is the boxes' gateway and resolver, which the lab's server takes on. */
export type LabNetwork = {
  name: string;
  v4: { subnet: string; lab: string };
  v6: { subnet: string; lab: string };
};

const ATTEMPTS = 12;

/**
 * Creates a bridge whose boxes have the lab as their default gateway for IPv4 and IPv6. Docker is told so
 * by the auxiliary addresses; podman knows no such thing, see `podman-bridge.ts`. Docker's is not
 * `--internal`: where the host passes bridged packets through iptables, the rules of an internal network
 * drop every packet for a public-looking address on its way to the lab.
 */
export async function createLabNetwork(engine: EngineCommand, name: string, labels: readonly string[]): Promise<LabNetwork> {
  let refusal = "";
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const network = drawSubnets(engine.name, name);
    if (clashesWithHost(network.v4.subnet)) continue;
    const { exitCode, stderr } = await engine.attempt(["network", "create", ...createArgs(engine.name, network, labels), name]);
    if (exitCode === 0) return network;
    refusal = stderr.trim();
    // Overlap with another network is a reason to draw again; anything else will not get better.
    if (!/overlap|already used|being used|conflict/i.test(refusal)) break;
  }
  throw new EngineError({ what: `lab: no network could be made: ${refusal}`, fix: "remove networks that nobody uses (docker network prune)" });
}

function createArgs(engine: EngineName, { v4, v6 }: LabNetwork, labels: readonly string[]): string[] {
  const gateways = {
    docker: [
      ["--subnet", v4.subnet, "--gateway", nthAddress(v4.subnet, 1), "--aux-address", `DefaultGatewayIPv4=${v4.lab}`],
      ["--subnet", v6.subnet, "--gateway", nthAddress(v6.subnet, 1), "--aux-address", `DefaultGatewayIPv6=${v6.lab}`],
      ["--opt", "com.docker.network.bridge.enable_ip_masquerade=false"],
    ],
    podman: [["--subnet", v4.subnet, "--gateway", v4.lab, "--subnet", v6.subnet, "--gateway", v6.lab, "--disable-dns"]],
  };
  return [["--driver", "bridge", "--ipv6"], ...gateways[engine], labels.flatMap((label) => ["--label", label])].flat();
}

function drawSubnets(engine: EngineName, name: string): LabNetwork {
  const unique = randomBytes(5).toString("hex");
  const v4 = `172.31.${randomInt(256)}.0/24`;
  const v6 = `fd${unique.slice(0, 2)}:${unique.slice(2, 6)}:${unique.slice(6)}::/64`;
  // Docker keeps the first address for its own bridge.
  const host = engine === "docker" ? 2 : 1;
  return { name, v4: { subnet: v4, lab: nthAddress(v4, host) }, v6: { subnet: v6, lab: nthAddress(v6, host) } };
}

function nthAddress(subnet: string, host: number): string {
  const bytes = ipaddr.parseCIDR(subnet)[0].toByteArray();
  return ipaddr.fromByteArray([...bytes.slice(0, -1), host]).toString();
}

function clashesWithHost(subnet: string): boolean {
  const prefix = subnet.replace(".0/24", ".");
  return Object.values(networkInterfaces()).some((entries) => entries?.some(({ address }) => address.startsWith(prefix)));
}
