import type { ContainerPlan, EngineTraits, PortMapping } from "./container-plan.ts";
import { renderMount, renderTmpfs } from "./mount-argv.ts";
import { baseCapabilities, firewallCapabilities, pidsLimit, stopTimeoutSeconds, writableTmpfs } from "./security.ts";
import { labelVolume } from "./volumes.ts";

/** Renders the arguments of `docker create` or `podman create`: one argument a word, nothing for a shell to read. */
export function renderCreateArgv(plan: ContainerPlan, engine: EngineTraits): string[] {
  return [
    "create",
    "--name",
    plan.name,
    // The image was built just now or is there; a registry never gets to answer for it.
    ...["--pull", "never"],
    ...renderStreams(plan),
    ...renderLabels(plan),
    ...renderSecurity(plan, engine),
    ...renderProcess(plan, engine),
    ...renderEnvironment(plan),
    ...renderNetwork(plan, engine),
    ...renderMounts(plan, engine),
    plan.image,
  ];
}

/** Nobody speaks to a holder. */
function renderStreams({ role, terminal }: ContainerPlan): string[] {
  if (role === "holder") return [];
  return terminal ? ["--interactive", "--tty"] : ["--interactive"];
}

function renderLabels({ session, owner, project, role }: ContainerPlan): string[] {
  const labels = { session, owner, project, role };
  return Object.entries(labels).flatMap(([key, value]) => ["--label", `agentbox.${key}=${value}`]);
}

function renderSecurity(plan: ContainerPlan, engine: EngineTraits): string[] {
  const capabilities = listCapabilities(plan);
  return [
    ...["--cap-drop", "ALL"],
    ...capabilities.flatMap((capability) => ["--cap-add", capability]),
    ...["--security-opt", "no-new-privileges"],
    ...["--security-opt", `seccomp=${plan.seccomp}`],
    // Relabelling the user's project would change it on the host; the label check is switched off instead.
    ...(engine.selinux ? ["--security-opt", "label=disable"] : []),
    // Rootless Podman gives the box the user's own id, so files in the project keep their owner.
    ...(engine.kind === "podman" && engine.rootless ? ["--userns", plan.network.kind === "container" ? `container:${plan.network.name}` : "keep-id"] : []),
    ...["--user", `${plan.user.uid}:${plan.user.gid}`],
    "--read-only",
    ...["--pids-limit", String(pidsLimit)],
  ];
}

function listCapabilities({ role, firewall }: ContainerPlan): readonly string[] {
  if (role === "agent") return [];
  return firewall ? [...firewallCapabilities, ...baseCapabilities] : baseCapabilities;
}

function renderProcess({ memory, cpus }: ContainerPlan, { hostOptions }: EngineTraits): string[] {
  return [
    ...hostOptions,
    ...(memory === undefined ? [] : ["--memory", memory]),
    ...(cpus === undefined ? [] : ["--cpus", String(cpus)]),
    // Reaps orphans and forwards signals to the agent.
    "--init",
    ...["--restart", "no"],
    ...["--stop-timeout", String(stopTimeoutSeconds)],
    // What an agent prints may be secret and has no end: the engine keeps no copy of it.
    ...["--log-driver", "none"],
  ];
}

/** Only switches of the entrypoint; the agent's variables travel in the box's specification. */
function renderEnvironment({ firewall, jsonLog }: ContainerPlan): string[] {
  return ["--env", `AGENTBOX_FIREWALL=${firewall ? "1" : "0"}`, ...(jsonLog ? ["--env", "AGENTBOX_LOG=json"] : [])];
}

function renderNetwork({ network, firewall, dns, addHosts, ports }: ContainerPlan, engine: EngineTraits): string[] {
  // Hosts file, resolvers and ports belong to the namespace; engines refuse them beside another container's. So does Docker with the host name.
  if (network.kind === "container") return [...(engine.kind === "podman" ? ["--hostname", "agentbox"] : []), "--network", `container:${network.name}`];
  const hosts = addHosts.flatMap(({ name, address }) => ["--add-host", `${name}:${address}`]);
  if (network.kind === "none") return ["--hostname", "agentbox", "--network", "none", ...hosts];
  return [
    ...["--hostname", "agentbox"],
    ...["--network", network.name],
    ...(firewall ? renderPort53(engine) : []),
    ...(network.disableIpv6 ? ["--sysctl", "net.ipv6.conf.all.disable_ipv6=1"] : []),
    ...dns.flatMap((address) => ["--dns", address]),
    ...hosts,
    ...ports.flatMap((port) => ["--publish", renderPort(port)]),
  ];
}

/** The box's own resolver binds port 53 without the capability for it; Docker allows that by itself where it is root. */
function renderPort53({ kind, rootless }: EngineTraits): string[] {
  return kind === "docker" && !rootless ? [] : ["--sysctl", "net.ipv4.ip_unprivileged_port_start=0"];
}

/** Renders `ADDRESS:HOST:CONTAINER`, with `/udp` where it is not TCP. */
export function renderPort({ address, host, container, protocol }: PortMapping): string {
  const where = address.includes(":") ? `[${address}]` : address;
  return `${where}:${host}:${container}${protocol === "udp" ? "/udp" : ""}`;
}

function renderMounts({ mounts, project, home }: ContainerPlan, engine: EngineTraits): string[] {
  // Podman knows no such option; its volumes are labelled when they are made.
  const label = (name: string): string[] => (engine.kind === "docker" ? labelVolume(name, { project, home }) : []);
  const fixed = writableTmpfs.flatMap((tmpfs) => ["--tmpfs", renderTmpfs(tmpfs)]);
  const planned = mounts.flatMap((mount) =>
    mount.kind === "tmpfs" ? ["--tmpfs", renderTmpfs(mount)] : ["--mount", renderMount(mount, mount.kind === "volume" ? label(mount.name) : [])],
  );
  return [...fixed, ...planned];
}
