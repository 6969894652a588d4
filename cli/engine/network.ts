import { z } from "zod";
import { EngineError, UsageError } from "../../policy/errors.ts";
import type { Engine } from "./engine.ts";

/** What a box needs to know of the network it joins. Addresses are canonical text. */
export type NetworkFacts = { name: string; ipv6: boolean; gateways: readonly string[]; subnets: readonly string[] };

const dockerNetwork = z.array(
  z.object({
    Driver: z.string(),
    EnableIPv6: z.boolean(),
    IPAM: z.object({ Config: z.array(z.object({ Subnet: z.string().optional(), Gateway: z.string().optional() })).nullable() }),
  }),
);

const podmanNetwork = z.array(
  z.object({
    driver: z.string(),
    ipv6_enabled: z.boolean(),
    subnets: z.array(z.object({ subnet: z.string(), gateway: z.string().optional() })).optional(),
  }),
);

/** Reads a network of the engine. Throws UsageError unless it is a bridge: all others reach past the box. */
export async function inspectNetwork(engine: Engine, name: string): Promise<NetworkFacts> {
  const result = await engine.client.call(["network", "inspect", name]);
  if (result.exitCode !== 0) throw missingNetwork(engine, name, result.stderr);
  const network = engine.kind === "docker" ? readDockerNetwork(result.stdout) : readPodmanNetwork(result.stdout);
  if (network === undefined) {
    throw new EngineError({ what: `${engine.kind} network inspect ${name} gave an answer of an unknown form`, fix: "use a supported version of the engine" });
  }
  if (network.driver !== "bridge") {
    throw new UsageError({
      what: `--network ${name} is a ${network.driver} network`,
      expected: "a bridge network: on others the box would share addresses with the host or the local network",
      fix: `create one with \`${engine.kind} network create NAME\``,
    });
  }
  return { name, ipv6: network.ipv6, gateways: network.gateways, subnets: network.subnets };
}

type NetworkAnswer = { driver: string; ipv6: boolean; gateways: string[]; subnets: string[] };

function readDockerNetwork(text: string): NetworkAnswer | undefined {
  const [network] = dockerNetwork.safeParse(JSON.parse(text)).data ?? [];
  if (network === undefined) return undefined;
  const config = network.IPAM.Config ?? [];
  const gateways = config.map(({ Gateway, Subnet }) => Gateway ?? firstAddress(Subnet));
  const subnets = config.flatMap(({ Subnet }) => Subnet ?? []);
  return { driver: network.Driver, ipv6: network.EnableIPv6, gateways: keepAddresses(gateways), subnets };
}

function readPodmanNetwork(text: string): NetworkAnswer | undefined {
  const [network] = podmanNetwork.safeParse(JSON.parse(text)).data ?? [];
  if (network === undefined) return undefined;
  const subnets = network.subnets ?? [];
  const gateways = subnets.map(({ gateway, subnet }) => gateway ?? firstAddress(subnet));
  return { driver: network.driver, ipv6: network.ipv6_enabled, gateways: keepAddresses(gateways), subnets: subnets.map(({ subnet }) => subnet) };
}

/** Docker leaves the gateway of its default bridge out until it has been used; it is the subnet's first address. */
function firstAddress(subnet: string | undefined): string | undefined {
  const bytes = subnet?.match(/^(\d+\.\d+\.\d+)\.(\d+)\/\d+$/);
  return bytes === null || bytes === undefined ? undefined : `${bytes[1]}.${Number(bytes[2]) + 1}`;
}

/** Docker writes some IPv6 gateways with a prefix length. */
function keepAddresses(gateways: readonly (string | undefined)[]): string[] {
  return gateways.filter((gateway) => gateway !== undefined).map((gateway) => gateway.replace(/\/\d+$/, ""));
}

function missingNetwork(engine: Engine, name: string, message: string): EngineError | UsageError {
  if (name === engine.defaultNetwork) {
    return new EngineError({ what: `${engine.kind} has no network ${name}: ${message.trim()}`, fix: `restart ${engine.kind}, which creates it` });
  }
  return new UsageError({ what: `--network ${name} does not exist`, expected: "the name of a bridge network", fix: `see \`${engine.kind} network ls\`` });
}
