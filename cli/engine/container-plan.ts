import type { PortMapping } from "../../policy/box-words.ts";
import type { Mount } from "../mount.ts";
import type { Engine } from "./engine.ts";

export type { PortMapping };

/** A name that the box finds in its hosts file. `address` may be the engine's word `host-gateway`. */
export type HostAddress = { name: string; address: string };

export type BoxNetwork =
  | { kind: "none" }
  /** `disableIpv6`: the network has none and the kernel knows how to switch it off. */
  | { kind: "bridge"; name: string; disableIpv6: boolean }
  /** The namespace of another container, which has the network's settings. */
  | { kind: "container"; name: string };

/**
 * What a container is: everything in one; the holder of a sidecar, which has the namespace and the rights over it;
 * or the agent's container that joins it, with no right at all.
 */
type ContainerRole = "box" | "holder" | "agent";

/** Everything that `create` is told about one container, as data. */
export type ContainerPlan = {
  name: string;
  role: ContainerRole;
  image: string;
  session: string;
  /** Who removes the container: process id and start time of the command line. */
  owner: string;
  project: string;
  /** `~/.agentbox` of the user, which tells whose volumes these are. */
  home: string;
  terminal: boolean;
  /** Ids of the first process. */
  user: { uid: number; gid: number };
  firewall: boolean;
  jsonLog: boolean;
  network: BoxNetwork;
  mounts: readonly Mount[];
  ports: readonly PortMapping[];
  dns: readonly string[];
  addHosts: readonly HostAddress[];
  /** In the engine's own words, such as `2g`; undefined for no limit. */
  memory: string | undefined;
  /** Number of processors; undefined for no limit. */
  cpus: number | undefined;
  /** Path of the seccomp profile on the host. */
  seccomp: string;
};

/** The traits of an engine that its command line depends on. */
export type EngineTraits = Pick<Engine, "kind" | "rootless" | "selinux" | "hostOptions">;
