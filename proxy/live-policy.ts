import { parseAddress, type Address } from "../policy/address.ts";
import { type BoxPolicy, loadBoxPolicy } from "../policy/box-policy.ts";
import type { KeeperMessage } from "../policy/keeper-message.ts";

export type PolicyMessage = Extract<KeeperMessage, { op: "policy" }>;

/** The policy that serves, with what the keeper knows of the box's surroundings. */
export type LivePolicy = {
  /** Counts the policies of this process: whoever keeps something that a policy decided compares it. */
  epoch: number;
  version: number;
  box: BoxPolicy;
  /** The names of the box's hosts file. */
  hosts: ReadonlyMap<string, readonly Address[]>;
  /** What private names led to when they were first asked for. */
  pins: ReadonlyMap<string, readonly Address[]>;
  upstreams: readonly Address[];
  engineResolver: Address | undefined;
};

let epochs = 0;

/**
 * Builds a policy of what the keeper sent; nothing of it serves before all of it is built.
 *
 * Errors: ConfigError for a document that `buildBoxPolicy` refuses.
 */
export async function buildLivePolicy(message: PolicyMessage, now: number): Promise<LivePolicy> {
  const box = await loadBoxPolicy({ document: message.document, lists: message.lists, now });
  epochs += 1;
  return {
    epoch: epochs,
    version: message.version,
    box,
    hosts: new Map(Object.entries(message.hosts).map(([name, texts]) => [name.toLowerCase(), parseAddresses(texts)])),
    pins: new Map(Object.entries(message.pins).map(([name, texts]) => [name, parseAddresses(texts)])),
    upstreams: parseAddresses(message.upstreams),
    engineResolver: message.engineResolver === null ? undefined : parseAddresses([message.engineResolver])[0],
  };
}

/** A hosts file may hold what nobody can dial, such as an address with a zone; such lines count for nothing. */
function parseAddresses(texts: readonly string[]): readonly Address[] {
  return texts.flatMap((text) => {
    const address = parseAddress(text);
    return address.ok ? [address.value] : [];
  });
}
