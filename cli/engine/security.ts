/**
 * What a box may do, as data. Root in the box programs the firewall and hands over to the agent;
 * everything else that root can usually do is gone, so there is nothing to climb on.
 */

/** KILL lets the init forward signals to an agent of another uid; the other three change to that uid. */
export const baseCapabilities = ["SETUID", "SETGID", "SETPCAP", "KILL"] as const;

/** NET_ADMIN programs the rules. NET_RAW opens the socket of the set match, without which iptables cannot use ipset. */
export const firewallCapabilities = ["NET_ADMIN", "NET_RAW"] as const;

/** Far above what builds and test runs start, far below what would starve the host. */
export const pidsLimit = 4096;

/** Seconds between SIGTERM and SIGKILL when a box is stopped. */
export const stopTimeoutSeconds = 10;

export type TmpfsMount = { target: string; options: readonly string[] };

/** What is writable although the root file system is not; none of it survives the box. */
export const writableTmpfs: readonly TmpfsMount[] = [
  { target: "/tmp", options: ["rw", "exec", "nosuid", "nodev", "mode=1777"] },
  { target: "/var/tmp", options: ["rw", "exec", "nosuid", "nodev", "mode=1777"] },
  { target: "/run", options: ["rw", "noexec", "nosuid", "nodev", "mode=755"] },
];

/** Networks by name that would put the box on the host's or another container's network. */
export function explainRefusedNetwork(name: string): string | undefined {
  if (name === "host") return "it is the host's own network, where a firewall of the box would be the host's";
  if (name === "none") return "a box without network is what an empty allowlist gives";
  if (/^(container|ns|service):/.test(name)) return "it shares the network of another container";
  if (/^(slirp4netns|pasta|private|default)(:|$)/.test(name)) return "it is not a bridge network";
  return undefined;
}
