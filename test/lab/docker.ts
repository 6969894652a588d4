import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { EngineError } from "../../policy/errors.ts";
import { createControl, socketTransport, type ControlTransport, type LabControl } from "./control-client.ts";
import type { ServeOptions } from "./control-schema.ts";
import { openEngine, type EngineCommand, type EngineName } from "./docker-command.ts";
import { createLabNetwork, type LabNetwork } from "./docker-network.ts";
import { labLabels, removeLab, removeLabs } from "./docker-sweep.ts";
import { freePodmanBridge } from "./podman-bridge.ts";
import { ownIdentity } from "./process-identity.ts";
import { defaultStateDirectory, openIdentity, type LabIdentity } from "./state-directory.ts";

export type DockerLab = Pick<LabIdentity, "caFile" | "sshKeyFile" | "knownHostsFile"> & {
  /** The network to start boxes on: `--network NAME`. */
  network: string;
  /** The container that plays the internet. */
  container: string;
  /** The boxes' resolver: `--dns ADDRESS`; also their gateway. */
  dns: string;
  dns6: string;
  gateway: string;
  gateway6: string;
  control: LabControl;
  /** The control server's unix socket, in a directory of the host. */
  socket: string;
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
};

export type DockerLabOptions = {
  engine?: EngineName;
  /** Any image with Node 24, iproute2 and git, such as AgentBox's own. */
  image: string;
  names?: readonly string[];
  stateDirectory?: string;
  /** Stays when this process ends; `removeLabs(engine, "lasting")` takes it away. */
  lasting?: boolean;
};

const CHECKOUT = join(import.meta.dirname, "..", "..");
const MAIN = join(import.meta.dirname, "main.ts");
const READY_TIMEOUT_MS = 30_000;
let serial = 0;

/**
 * Starts the lab as a container on a bridge of its own and waits until it answers. Several labs run side
 * by side. Leftovers of starters that were killed are removed first.
 */
export async function startDockerLab(options: DockerLabOptions): Promise<DockerLab> {
  const engine = openEngine(options.engine ?? "docker");
  await removeLabs(engine, "abandoned");
  const owner = ownIdentity();
  const name = `agentbox-lab-${owner.pid}-${owner.start}-${(serial += 1)}`;
  const [identity, runDirectory] = await Promise.all([openIdentity(options.stateDirectory ?? defaultStateDirectory()), mkdtemp(join(tmpdir(), "agentbox-lab-"))]);
  const labels = labLabels({ name, runDirectory, owner: options.lasting === true ? undefined : owner });
  const stop = () => removeLab(engine, { name, runDirectory });

  try {
    const network = await createLabNetwork(engine, name, labels);
    await engine.run(runArgs({ engine: engine.name, name, labels, network, image: options.image, identity, runDirectory, names: options.names ?? [] }));
    if (engine.name === "podman") await freePodmanBridge(engine, network);
    const socket = join(runDirectory, "control.sock");
    const transport = await untilReady({ engine, name, socket });
    return {
      network: name,
      container: name,
      dns: network.v4.lab,
      dns6: network.v6.lab,
      gateway: network.v4.lab,
      gateway6: network.v6.lab,
      caFile: identity.caFile,
      sshKeyFile: identity.sshKeyFile,
      knownHostsFile: identity.knownHostsFile,
      control: createControl(transport),
      socket,
      stop,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function runArgs(lab: {
  engine: EngineName;
  name: string;
  labels: readonly string[];
  network: LabNetwork;
  image: string;
  identity: LabIdentity;
  runDirectory: string;
  names: readonly string[];
}): string[] {
  const { engine, name, labels, network, image, identity, runDirectory, names } = lab;
  const serve: ServeOptions = {
    interface: "eth0",
    v4: { address: network.v4.lab, subnet: network.v4.subnet },
    v6: { address: network.v6.lab, subnet: network.v6.subnet },
    stateDirectory: "/lab/state",
    socket: "/lab/run/control.sock",
    scratchDirectory: "/tmp",
    names: [...names],
    followStdin: false,
  };
  return [
    ["run", "--detach", "--name", name, "--hostname", "lab", "--network", name, "--user", "0:0", "--entrypoint", "node"],
    labels.flatMap((label) => ["--label", label]),
    ["--cap-add", "NET_ADMIN", "--security-opt", "no-new-privileges", "--restart", "no"],
    ["--sysctl", "net.ipv4.ip_forward=0", "--sysctl", "net.ipv6.conf.all.forwarding=0", "--sysctl", "net.ipv6.ip_nonlocal_bind=1"],
    // podman asks for more files and processes than a nested host may grant.
    engine === "podman" ? ["--ulimit", "nofile=8192:8192", "--ulimit", "nproc=4096:4096"] : [],
    ["--mount", bind(CHECKOUT, CHECKOUT, true)],
    ["--mount", bind(identity.directory, "/lab/state", true)],
    ["--mount", bind(runDirectory, "/lab/run", false)],
    [image, MAIN, "serve", JSON.stringify(serve)],
  ].flat();
}

function bind(source: string, target: string, readOnly: boolean): string {
  return ["type=bind", csvField(`source=${source}`), csvField(`target=${target}`), ...(readOnly ? ["readonly"] : [])].join(",");
}

// The value of --mount is CSV: a path with a comma or a quote would end its field.
function csvField(text: string): string {
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

async function untilReady({ engine, name, socket }: { engine: EngineCommand; name: string; socket: string }): Promise<ControlTransport> {
  const direct = socketTransport(socket);
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (Date.now() < deadline) {
    if (await direct("GET", "/state", "").then(() => true, () => false)) return direct;
    const state = await engine.attempt(["inspect", "--format", "{{.State.Running}}", name]);
    if (state.stdout.trim() !== "true") break;
    // On macOS the socket's file crosses into the virtual machine, its connections do not.
    const through = execTransport(engine, name);
    if (process.platform !== "linux" && (await through("GET", "/state", "").then(() => true, () => false))) return through;
    await delay(50);
  }
  const { stdout, stderr } = await engine.attempt(["logs", "--tail", "20", name]);
  throw new EngineError({ what: `the lab's container is not ready: ${`${stdout}${stderr}`.trim()}`, expected: "an image with Node 24, iproute2 and git" });
}

/** The transport through the engine's `exec`, where the socket cannot be reached from the host. */
function execTransport(engine: EngineCommand, name: string): ControlTransport {
  return (method, path, body) =>
    engine.run(["exec", name, "node", MAIN, "control", method, path, body, "--socket", "/lab/run/control.sock"]);
}
