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
    ...(plan.terminal ? ["--interactive", "--tty"] : ["--interactive"]),
    ...renderLabels(plan),
    ...renderSecurity(plan, engine),
    ...renderProcess(engine),
    ...renderEnvironment(plan),
    ...renderNetwork(plan),
    ...renderMounts(plan, engine),
    plan.image,
  ];
}

function renderLabels({ session, owner, project }: ContainerPlan): string[] {
  const labels = { session, owner, project };
  return Object.entries(labels).flatMap(([key, value]) => ["--label", `agentbox.${key}=${value}`]);
}

function renderSecurity(plan: ContainerPlan, engine: EngineTraits): string[] {
  const capabilities = plan.firewall ? [...firewallCapabilities, ...baseCapabilities] : baseCapabilities;
  return [
    ...["--cap-drop", "ALL"],
    ...capabilities.flatMap((capability) => ["--cap-add", capability]),
    ...["--security-opt", "no-new-privileges"],
    ...["--security-opt", `seccomp=${plan.seccomp}`],
    // Relabelling the user's project would change it on the host; the label check is switched off instead.
    ...(engine.selinux ? ["--security-opt", "label=disable"] : []),
    // Rootless Podman gives the box the user's own id, so files in the project keep their owner.
    ...(engine.kind === "podman" && engine.rootless ? ["--userns", "keep-id"] : []),
    ...["--user", "0:0"],
    "--read-only",
    ...["--pids-limit", String(pidsLimit)],
  ];
}

function renderProcess({ hostOptions }: EngineTraits): string[] {
  return [
    ...hostOptions,
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

function renderNetwork({ network, dns, addHosts, ports }: ContainerPlan): string[] {
  const hosts = addHosts.flatMap(({ name, address }) => ["--add-host", `${name}:${address}`]);
  if (network.kind === "none") return ["--hostname", "agentbox", "--network", "none", ...hosts];
  return [
    ...["--hostname", "agentbox"],
    ...["--network", network.name],
    ...(network.disableIpv6 ? ["--sysctl", "net.ipv6.conf.all.disable_ipv6=1"] : []),
    ...dns.flatMap((address) => ["--dns", address]),
    ...hosts,
    ...ports.flatMap((port) => ["--publish", renderPort(port)]),
  ];
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
