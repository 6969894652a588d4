import { spawn, type ChildProcess } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { CapabilityError, EngineError } from "../../policy/errors.ts";
import { clientEnvironment } from "./client-environment.ts";
import { mustRun, runCommand, type CommandOptions, type CommandResult } from "./command.ts";
import { createControl, socketTransport, type LabControl } from "./control-client.ts";
import type { ServeOptions } from "./control-schema.ts";
import { removeNamespace, resolverDirectory, sweepNamespaces } from "./namespace-sweep.ts";
import { ownIdentity } from "./process-identity.ts";
import { defaultStateDirectory, openIdentity, type LabIdentity } from "./state-directory.ts";

type AddressPair = { v4: string; v6: string };

/** One network namespace that plays a box. */
export type LabBox = {
  namespace: string;
  addresses: AddressPair;
  /** The argv that runs a command in the box, for those who spawn themselves. */
  argv(argv: readonly string[], user?: { uid: number; gid: number }): string[];
  /** Runs a command in the box with a clean environment: PATH, HOME, LANG and what points clients at the lab's CA. */
  exec(argv: readonly string[], options?: CommandOptions): Promise<CommandResult>;
};

export type NamespaceLab = LabBox &
  Pick<LabIdentity, "caFile" | "sshKeyFile" | "knownHostsFile"> & {
    boxNamespace: string;
    boxAddresses: AddressPair;
    labNamespace: string;
    gateway: AddressPair;
    dns: AddressPair;
    env: Readonly<Record<string, string>>;
    control: LabControl;
    /** The control server's unix socket. */
    socket: string;
    /** Adds a sibling box on the same network. */
    addBox(): Promise<LabBox>;
    /** Runs a command on the lab's side, as somebody on the internet would. */
    execInLab(argv: readonly string[], options?: CommandOptions): Promise<CommandResult>;
    stop(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
  };

const SUBNET = { v4: "172.30.0.0/24", v6: "fd00:1ab::/64" } as const;
const GATEWAY: AddressPair = { v4: "172.30.0.1", v6: "fd00:1ab::1" };
const FIRST_BOX = 10;
const READY_TIMEOUT_MS = 15_000;
/** A run of many tests names the lab's program that was bundled for it. */
const MAIN = process.env["AGENTBOX_TEST_LAB"] ?? join(import.meta.dirname, "main.ts");
let serial = 0;

/**
 * Starts a lab in namespaces of its own, with one box joined to it; there is no uplink. Several labs run
 * side by side with the same addresses. `names` are further host names that shall resolve. Needs root.
 */
export async function startNamespaceLab(options: { names?: readonly string[]; stateDirectory?: string } = {}): Promise<NamespaceLab> {
  if (process.getuid?.() !== 0) throw new CapabilityError({ what: "the namespace lab needs root", fix: "run it as root, or use the Docker lab" });
  const { pid, start } = ownIdentity();
  const prefix = `abl-${pid}-${start}-${(serial += 1)}`;
  const labNamespace = `${prefix}-lab`;
  // The name tells a later start whose it was; mkdir refuses one that somebody else has put there.
  const runDirectory = join(tmpdir(), prefix);
  const [identity] = await Promise.all([
    openIdentity(options.stateDirectory ?? defaultStateDirectory()),
    mkdir(runDirectory, { mode: 0o700 }),
    sweepNamespaces(),
  ]);
  const env = clientEnvironment(identity);
  const namespaces = [labNamespace];
  const socket = join(runDirectory, "control.sock");
  let server: ChildProcess | undefined;

  async function addBox(): Promise<LabBox> {
    const number = namespaces.length - 1;
    const namespace = `${prefix}-box${number}`;
    namespaces.push(namespace);
    const addresses = { v4: `172.30.0.${FIRST_BOX + number}`, v6: `fd00:1ab::${(FIRST_BOX + number).toString(16)}` };
    await createBoxNamespace({ namespace, labNamespace, port: `box${number}`, addresses });
    return boxOf(namespace, addresses, env);
  }

  async function stop(): Promise<void> {
    server?.stdin?.end();
    if (server !== undefined && server.exitCode === null && server.signalCode === null) server.kill("SIGKILL");
    for (const namespace of namespaces.toReversed()) await removeNamespace(namespace);
    await rm(runDirectory, { recursive: true, force: true });
  }

  try {
    await createLabNamespace(labNamespace);
    const serve: ServeOptions = {
      interface: "br0",
      v4: { address: GATEWAY.v4, subnet: SUBNET.v4 },
      v6: { address: GATEWAY.v6, subnet: SUBNET.v6 },
      stateDirectory: identity.directory,
      socket,
      scratchDirectory: runDirectory,
      names: [...(options.names ?? [])],
      followStdin: true,
    };
    const [file = "", ...args] = within(labNamespace, [process.execPath, MAIN, "serve", JSON.stringify(serve)]);
    server = spawn(file, args, { stdio: ["pipe", "pipe", "inherit"] });
    const [box] = await Promise.all([addBox(), untilReady(server)]);
    return {
      ...box,
      boxNamespace: box.namespace,
      boxAddresses: box.addresses,
      labNamespace,
      gateway: GATEWAY,
      dns: GATEWAY,
      env,
      caFile: identity.caFile,
      sshKeyFile: identity.sshKeyFile,
      knownHostsFile: identity.knownHostsFile,
      control: createControl(socketTransport(socket)),
      socket,
      addBox,
      execInLab: (argv, run) => runCommand(within(labNamespace, argv), { ...run, env: { ...env, ...run?.env } }),
      stop,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function createLabNamespace(namespace: string): Promise<void> {
  await mustRun(["ip", "netns", "add", namespace]);
  await ipBatch(namespace, ["link set lo up", "link add br0 type bridge forward_delay 0 stp_state 0", "link set br0 up"]);
}

async function createBoxNamespace(box: { namespace: string; labNamespace: string; port: string; addresses: AddressPair }): Promise<void> {
  const { namespace, labNamespace, port, addresses } = box;
  // `ip netns exec` mounts this file over /etc/resolv.conf for the commands it runs.
  const resolver = join(resolverDirectory(namespace), "resolv.conf");
  await mkdir(dirname(resolver), { recursive: true });
  await writeFile(resolver, `nameserver ${GATEWAY.v4}\nnameserver ${GATEWAY.v6}\n`);
  await mustRun(["ip", "netns", "add", namespace]);
  await ipBatch(labNamespace, [`link add ${port} type veth peer name eth0 netns ${namespace}`, `link set ${port} master br0 up`]);
  await ipBatch(namespace, [
    "link set lo up",
    `addr add ${addresses.v4}/24 dev eth0`,
    `addr add ${addresses.v6}/64 dev eth0 nodad`,
    "link set eth0 up",
    `route add 0.0.0.0/0 via ${GATEWAY.v4}`,
    `route add ::/0 via ${GATEWAY.v6}`,
  ]);
}

function boxOf(namespace: string, addresses: AddressPair, env: Readonly<Record<string, string>>): LabBox {
  const argvOf: LabBox["argv"] = (argv, user) => {
    const become = user === undefined ? [] : ["setpriv", `--reuid=${user.uid}`, `--regid=${user.gid}`, "--clear-groups"];
    return within(namespace, [...become, ...argv]);
  };
  return {
    namespace,
    addresses,
    argv: argvOf,
    exec: (argv, { uid, gid, ...run } = {}) =>
      runCommand(argvOf(argv, uid === undefined ? undefined : { uid, gid: gid ?? uid }), { ...run, env: { ...env, ...run.env } }),
  };
}

function within(namespace: string, argv: readonly string[]): string[] {
  return ["ip", "netns", "exec", namespace, ...argv];
}

async function ipBatch(namespace: string, lines: readonly string[]): Promise<void> {
  await mustRun(["ip", "-n", namespace, "-batch", "-"], { input: `${lines.join("\n")}\n` });
}

function untilReady(server: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new EngineError({ what: `the lab is not ready after ${READY_TIMEOUT_MS} ms` })), READY_TIMEOUT_MS);
    server.once("error", reject);
    server.once("exit", (code) => reject(new EngineError({ what: `the lab ended with ${code ?? "a signal"} before it was ready`, fix: "see its message above" })));
    server.stdout?.once("data", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
