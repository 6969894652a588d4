import type { Mount } from "../mount.ts";
import type { Engine } from "./engine.ts";

/** A port of the box that the engine publishes on an address of the host. */
export type PortMapping = { address: string; host: number; container: number; protocol: "tcp" | "udp" };

/** A name that the box finds in its hosts file. `address` may be the engine's word `host-gateway`. */
export type HostAddress = { name: string; address: string };

export type BoxNetwork =
  | { kind: "none" }
  /** `disableIpv6`: the network has none and the kernel knows how to switch it off. */
  | { kind: "bridge"; name: string; disableIpv6: boolean };

/** Everything that `create` is told about one container, as data. */
export type ContainerPlan = {
  name: string;
  image: string;
  session: string;
  /** Who removes the container: process id and start time of the command line. */
  owner: string;
  project: string;
  /** `~/.agentbox` of the user, which tells whose volumes these are. */
  home: string;
  terminal: boolean;
  firewall: boolean;
  jsonLog: boolean;
  network: BoxNetwork;
  mounts: readonly Mount[];
  ports: readonly PortMapping[];
  dns: readonly string[];
  addHosts: readonly HostAddress[];
  /** Path of the seccomp profile on the host. */
  seccomp: string;
};

/** The traits of an engine that its command line depends on. */
export type EngineTraits = Pick<Engine, "kind" | "rootless" | "selinux" | "hostOptions">;
