import { spawn } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { type BootEvent, bootEventSchema } from "../../../policy/boot-event.ts";
import { type BoxSpec, CA_BUNDLE_PATH, KEEPER_DIR } from "../../../policy/box-spec.ts";
import { DECISION_LOG_FILE, type DecisionRecord, decisionRecordSchema } from "../../../policy/decision-record.ts";
import { emptyDocument, type PolicyDocument } from "../../../policy/policy-document.ts";
import type { Ids } from "../../../policy/privileges.ts";
import { PROXY_SECRETS_FILE, type ProxySecrets } from "../../../policy/proxy-secrets.ts";
import { KEEPER_IDS } from "../../../policy/reserved-ids.ts";
import type { LabBox, NamespaceLab } from "../../lab/namespace.ts";

/** One start of the real entrypoint in a namespace of the lab, with the capabilities that a container would have. */
export type BoxRun = {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
  events: BootEvent[];
  /** The files of the session's log, by name. */
  logs: Record<string, string>;
};

export type BoxOptions = {
  /** Words of ALLOWED_SERVICES and CRITICAL_SERVICES; the shipped files where left out. */
  allowed?: readonly string[];
  critical?: readonly string[];
  /** The whole text of services.sh, good or bad. */
  services?: string;
  spec?: Partial<BoxSpec>;
  /** The whole text of box.json, good or bad; null leaves the file out. */
  specText?: string | null;
  command?: readonly string[];
  /** Replaces programs of /usr/sbin in the box: name to a shell script's text. The real ones are in /run/sbin.real. */
  replace?: Readonly<Record<string, string>>;
  /** The AGENTBOX_FIREWALL of the container; "1" where left out. */
  firewall?: string;
  capabilities?: string;
  /**
   * Has the proxy's sockets of the web answered by a stand-in, in the proxy's own process: each says which of them it is. What it does with a
   * TLS hello: `true` refuses it as the proxy refuses a name that is not allowed, which a start has to see.
   */
  standIn?: true | "mute" | "resets";
  /** What only the proxy may know; nothing where left out. The box's bundle holds the lab's authority and this one. */
  authority?: ProxySecrets["authority"];
  /** Who the container starts as, where not root: the agent's container of a sidecar. */
  ids?: Ids;
  /** Called with each event as it comes. */
  onEvent?: (event: BootEvent, kill: (signal: NodeJS.Signals) => void) => void;
};

/** Names decide in this one; what carries the web is tried in tests of its own. */
export const NAME_WALL: PolicyDocument = { ...emptyDocument({ name: "shell", hosts: [], critical: null }), enforcement: "name" };
/** Addresses alone decide: what a test of rules, resolver and keeper takes unless it says otherwise. */
export const ADDRESS_WALL: PolicyDocument = { ...NAME_WALL, enforcement: "address" };

const ROOT = join(import.meta.dirname, "../../..");
const ENTRYPOINT = join(ROOT, "build/entrypoint.mjs");
const PROXY = join(ROOT, "build/proxy.mjs");
const CAPABILITIES = "+kill,+setgid,+setuid,+setpcap,+net_admin,+net_raw";

/** Takes the sockets of the web from the argv, says on each connection which socket took it, and is the real proxy otherwise. */
const STAND_IN = `
import { createServer } from "node:net";
process.on("SIGALRM", () => undefined);
const rest = [];
for (let at = 2; at < process.argv.length; at += 2) {
  const [option, value] = process.argv.slice(at, at + 2);
  if (["--secrets", "--site-proxy"].includes(option)) continue;
  if (!["--http", "--socks", "--web", "--tls"].includes(option)) rest.push(option, value);
  else createServer((socket) => take(socket, "proxy" + option)).listen({ fd: Number(value) });
}
function take(socket, word) {
  const timer = setTimeout(() => socket.end(word), 300);
  socket.on("error", () => undefined);
  socket.once("data", ([first]) => {
    clearTimeout(timer);
    if (first !== 22) socket.end(word);
    else if (HELLO === "resets") socket.resetAndDestroy();
    else if (HELLO === true) socket.end(Buffer.from([21, 3, 3, 0, 2, 2, 49]));
  });
}
process.argv.splice(2, Infinity, ...rest);
await import("/run/proxy.mjs");
`;

// The paths of the image, put over the host's in a mount namespace of the box's own.
const MOUNTS = `
set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs /usr/local/share
mkdir -p /usr/local/share/agentbox/allowlists
mount --bind "$1/allowlists" /usr/local/share/agentbox/allowlists
mount --bind "$1/ca.crt" /etc/ssl/certs/ca-certificates.crt
mount -t tmpfs tmpfs /run
mkdir -p /run/agentbox
mount --bind "$1/run" /run/agentbox
mkdir -p ${KEEPER_DIR}
mount -t tmpfs -o mode=0710,uid=${KEEPER_IDS.uid},gid=${KEEPER_IDS.gid} tmpfs ${KEEPER_DIR}
mkdir ${KEEPER_DIR}/run ${KEEPER_DIR}/log
mount -t tmpfs -o mode=1777 tmpfs ${KEEPER_DIR}/run
mount --bind "$1/log" ${KEEPER_DIR}/log
# What an engine sets for every container (Docker) or is asked to (Podman).
echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start
mount --bind "$1/resolv.conf" /etc/resolv.conf
if [ -d "$1/replace" ]; then
  mkdir /run/sbin /run/sbin.real
  cp -a /usr/sbin/. /run/sbin
  mount --bind /usr/sbin /run/sbin.real
  cp --remove-destination "$1"/replace/* /run/sbin
  mount --bind /run/sbin /usr/sbin
fi
if [ -f "$1/proxy.mjs" ]; then
  touch /run/proxy.mjs
  mount --bind "$4" /run/proxy.mjs
  mount --bind "$1/proxy.mjs" "$4"
fi
capabilities=$2
ids=$3
shift 4
exec tini -- setpriv $ids --bounding-set="-all,$capabilities" --inh-caps=-all --ambient-caps=-all --no-new-privs -- "$@"
`;

/** The decision log of a box, oldest first. */
export function readDecisions({ logs }: Pick<BoxRun, "logs">): Extract<DecisionRecord, { kind: "decision" }>[] {
  const lines = (logs[DECISION_LOG_FILE] ?? "").split("\n").filter((line) => line !== "");
  return lines.map((line) => decisionRecordSchema.parse(JSON.parse(line))).filter((record) => record.kind === "decision");
}

/** Starts a box and waits for its end; the command defaults to `true`. */
export async function runBox(lab: NamespaceLab, options: BoxOptions = {}, box: LabBox = lab): Promise<BoxRun> {
  const dir = mkdtempSync(join(tmpdir(), "agentbox-netns-"));
  try {
    writeFiles(dir, lab, options);
    const firewall = options.firewall ?? "1";
    const run = await runEntrypoint(box, dir, { ...options, firewall });
    return { ...run, logs: readLogs(join(dir, "log")) };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function writeFiles(dir: string, lab: NamespaceLab, options: BoxOptions): void {
  mkdirSync(join(dir, "run"), { recursive: true });
  mkdirSync(join(dir, "log"));
  chmodSync(join(dir, "log"), 0o777);
  writeFileSync(join(dir, "resolv.conf"), "nameserver 127.0.0.1\n");
  cpSync(join(ROOT, "allowlists"), join(dir, "allowlists"), { recursive: true });
  if (options.services !== undefined) writeFileSync(join(dir, "allowlists/services.sh"), options.services);
  else if (options.allowed !== undefined) writeFileSync(join(dir, "allowlists/services.sh"), renderServices(options));
  // The lab's own CA on top of the machine's: whoever looks the bundle up finds both.
  writeFileSync(join(dir, "ca.crt"), readFileSync(lab.caFile));
  for (const [name, script] of Object.entries(options.replace ?? {})) {
    mkdirSync(join(dir, "replace"), { recursive: true });
    writeFileSync(join(dir, "replace", name), script, { mode: 0o755 });
  }
  const { authority = null } = options;
  const secrets: ProxySecrets = { version: 1, authority, upstream: null };
  writeFileSync(join(dir, "log", PROXY_SECRETS_FILE), JSON.stringify(secrets));
  if (authority !== null) writeFileSync(join(dir, "run", basename(CA_BUNDLE_PATH)), `${readFileSync(lab.caFile, "utf8")}${authority.certPem}`);
  if (options.standIn !== undefined) writeFileSync(join(dir, "proxy.mjs"), STAND_IN.replaceAll("HELLO", JSON.stringify(options.standIn)));
  const text = options.specText === undefined ? JSON.stringify(makeSpec(lab, options)) : options.specText;
  if (text !== null) writeFileSync(join(dir, "run/box.json"), text, { mode: 0o644 });
}

function readLogs(dir: string): Record<string, string> {
  return Object.fromEntries(readdirSync(dir).map((name) => [name, readFileSync(join(dir, name), "utf8")]));
}

function renderServices({ allowed = [], critical = [] }: BoxOptions): string {
  return renderArray("ALLOWED_SERVICES", allowed) + renderArray("CRITICAL_SERVICES", critical);
}

function renderArray(name: string, words: readonly string[]): string {
  return `${name}=(\n${words.map((word) => `  "${word}"\n`).join("")})\n`;
}

function makeSpec({ dns }: Pick<NamespaceLab, "dns">, { spec, command = ["true"] }: BoxOptions): BoxSpec {
  return {
    version: 2,
    session: "test",
    firewall: true,
    mode: "allowlist",
    role: "box",
    policy: ADDRESS_WALL,
    user: { uid: 1000, gid: 1000, home: "/nonexistent" },
    admin: false,
    command: [...command],
    cwd: "/",
    env: { PATH: "/usr/local/bin:/usr/bin:/bin:/usr/sbin" },
    dns: { upstreams: [dns.v4, dns.v6] },
    published: [],
    gateways: [],
    ...spec,
  };
}

function runEntrypoint(box: LabBox, dir: string, options: BoxOptions & { firewall: string }): Promise<BoxRun> {
  const argv = box.argv([
    "unshare",
    "--mount",
    // What a box leaves running ends with it, as in a container.
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
    "sh",
    "-c",
    MOUNTS,
    "box",
    dir,
    options.capabilities ?? CAPABILITIES,
    options.ids === undefined ? "" : `--reuid=${options.ids.uid} --regid=${options.ids.gid} --clear-groups`,
    PROXY,
    process.execPath,
    ENTRYPOINT,
  ]);
  const [file = "", ...rest] = argv;
  const child = spawn(file, rest, {
    env: { PATH: process.env["PATH"], AGENTBOX_FIREWALL: options.firewall, AGENTBOX_LOG: "json" },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 150_000,
  });
  const run: BoxRun = { code: null, signal: null, stdout: "", stderr: "", events: [], logs: {} };
  let pending = "";
  child.stdout.on("data", (chunk: Buffer) => (run.stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => {
    run.stderr += chunk.toString();
    pending += chunk.toString();
    const lines = pending.split("\n");
    pending = lines.pop() ?? "";
    for (const line of lines) {
      const event = parseEvent(line);
      if (event === undefined) continue;
      run.events.push(event);
      options.onEvent?.(event, (signal) => child.kill(signal));
    }
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ ...run, code, signal }));
  });
}

function parseEvent(line: string): BootEvent | undefined {
  if (!line.startsWith("{")) return undefined;
  const parsed = bootEventSchema.safeParse(JSON.parse(line));
  return parsed.success ? parsed.data : undefined;
}
