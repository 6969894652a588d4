import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CA_VARIABLES, describeProxyEnvironment, DIRECT_LOOPBACK } from "../../../policy/proxy-environment.ts";
import { type CommandResult, mustRun } from "../../lab/command.ts";
import { type NamespaceLab, startNamespaceLab } from "../../lab/namespace.ts";
import { type HeldBox, holdBox } from "./held-box.ts";
import { NAME_WALL, readDecisions } from "./netns-box.ts";

// Real programs through the real name wall, told of the proxy by their environment and not told. Each asks for an allowed name, for
// a name that is not allowed, and for an allowed address under a name of its own making, as if by a hosts file that leads there.

const FIXTURES = join(import.meta.dirname, "../../fixtures/web-clients");
const CA = "/etc/ssl/certs/ca-certificates.crt";
const ALLOWED = "shared-a.lab-names.example";
const ADDRESSES = ["93.184.216.5", "2606:2800:220:1::5"] as const;
const STREAMS_PORT = 9443;
const WAYS = ["told", "untold"] as const;

type Way = (typeof WAYS)[number];
type Client = {
  name: string;
  /** What it asks for where not `ALLOWED`. */
  allowed?: string;
  argv: (host: string, files: string) => readonly string[];
  works: RegExp;
  /** How it says that the proxy refused, that a name does not exist, and that TLS was refused. */
  says: Readonly<Record<"proxy" | "name" | "tls", RegExp>>;
};

const CURL = { proxy: /^56 .*CONNECT tunnel failed, response 403|^56 .*HTTP code 403 from proxy after CONNECT/, name: /^6 .*Could not resolve host/, tls: /^35 .*alert (access denied|.*49)/i };
const NODE = { proxy: /^1 .*403/, name: /^1 .*ENOTFOUND/, tls: /^1 .*ERR_SSL_TLSV1_ALERT_ACCESS_DENIED/ };
/** What an event of WebSocket tells of an error is nothing, by its standard: the log alone has the reason. */
const MUTE = { proxy: /^1 /, name: /^1 /, tls: /^1 / };
const PYTHON = { proxy: /^1 .*Tunnel connection failed: 403/s, name: /^1 .*Name or service not known/s, tls: /^1 .*(TLSV1_ALERT_ACCESS_DENIED|tlsv1 alert access denied)/s };
const GIT = { proxy: /^128 .*403/s, name: /^128 .*Could not resolve host/s, tls: /^128 .*(Access was denied|alert access denied)/s };

const CLIENTS: readonly Client[] = [
  { name: "curl by HTTP/1.1", argv: (host) => ["curl", "-sS", "--http1.1", `https://${host}/`], works: /^0 1\.1 GET$/, says: CURL },
  { name: "curl by HTTP/2", argv: (host) => ["curl", "-sS", "--http2", `https://${host}/`], works: /^0 2\.0 GET$/, says: CURL },
  { name: "curl that reads events", argv: (host) => ["bash", "-c", READ_EVENTS, host], works: /^0 3 events$/, says: CURL },
  { name: "git clone", allowed: "github.com", argv: (host, files) => ["git", "clone", "-q", `https://${host}/owner/repo`, join(files, "clones", host)], works: /^0 $/, says: GIT },
  { name: "npm view", allowed: "registry.npmjs.org", argv: (host, files) => [process.execPath, npm(), "view", "lab-hello", "version", "--registry", `https://${host}/`, "--fetch-retries", "0", "--cache", join(files, "clones/npm")], works: /^0 1\.1\.0$/, says: { proxy: /^1 .*403/s, name: /^1 .*ENOTFOUND/s, tls: /^1 .*ACCESS_DENIED/s } },
  { name: "pip download", allowed: "pypi.org", argv: (host, files) => ["pip3", "download", "-vv", "--no-deps", "--no-cache-dir", "--disable-pip-version-check", "--retries", "0", "-d", join(files, "clones", host), "--index-url", `https://${host}/simple/`, "lab-hello"], works: /^0 .*Successfully downloaded lab-hello/s, says: PYTHON },
  { name: "Python's requests", argv: (host) => ["/usr/bin/python3", "-c", `import requests; print(requests.get("https://${host}/").status_code)`], works: /^0 200$/, says: PYTHON },
  { name: "Node's fetch", argv: (host, files) => [process.execPath, join(files, "client.mjs"), "fetch", host], works: /^0 200$/, says: NODE },
  { name: "Node's WebSocket", argv: (host, files) => [process.execPath, join(files, "client.mjs"), "socket", host], works: /^0 said hello$/, says: MUTE },
  { name: "Node's fetch that reads events", argv: (host, files) => [process.execPath, join(files, "client.mjs"), "events", host], works: /^0 3 events$/, says: NODE },
  { name: "Java's HttpClient", argv: (host, files) => ["java", "-XX:TieredStopAtLevel=1", "-cp", files, "Fetch", "client", `https://${host}/`], works: /^0 HTTP_2 200$/, says: { proxy: /^(0 .*403|1 .*403)/s, name: /^1 .*(ConnectException|UnresolvedAddress)/s, tls: /^1 .*access_denied/s } },
  { name: "Java's HttpURLConnection", argv: (host, files) => ["java", "-XX:TieredStopAtLevel=1", "-cp", files, "Fetch", "connection", `https://${host}/`], works: /^0 200$/, says: { proxy: /^1 .*403/s, name: /^1 .*UnknownHostException/s, tls: /^1 .*access_denied/s } },
];

/** Tells the server of each event, which sends the next one only then. */
const READ_EVENTS = `set -o pipefail
curl -sSN "https://$0/events?reader=curl-$$" | {
  seen=0
  while read -r line; do case $line in data*) seen=$((seen + 1)); [ $seen = 3 ] || curl -sS -o /dev/null "https://$0/read?reader=curl-$$" ;; esac; done
  [ $seen = 0 ] || echo "$seen events"
}`;

const hostOf = (kind: "unlisted" | "misnamed", way: Way, client: Client): string => `${client.name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")}.${way}.${kind === "unlisted" ? "wild.lab-names.example" : "wrong.example"}`;

let lab: NamespaceLab;
let files = "";
const outcomes = new Map<string, string>();
const open = new Map<string, CommandResult>();
let decisions: ReturnType<typeof readDecisions> = [];

beforeAll(async () => {
  files = await makeFiles();
  lab = await startNamespaceLab();
  await serveStreams(lab);
  const misnamed = WAYS.flatMap((way) => CLIENTS.map((client) => hostOf("misnamed", way, client)));
  // `ip netns exec` lays this over /etc/hosts; the programs look there ahead of the resolver.
  writeFileSync(join("/etc/netns", lab.boxNamespace, "hosts"), `127.0.0.1 localhost\n${misnamed.map((host) => `${ADDRESSES[0]} ${host}\n`).join("")}`);
  const sibling = await lab.addBox();
  open.set("name", await sibling.exec(["curl", "-sS", "https://any.wild.lab-names.example/"]));
  open.set("misnamed", await sibling.exec(["curl", "-sS", "--resolve", `any.wrong.example:443:${ADDRESSES[0]}`, "https://any.wrong.example/"]));
  const allowed = [ALLOWED, "github.com", "registry.npmjs.org", "pypi.org", "files.pythonhosted.org"];
  const run = await holdBox(lab, { allowed, critical: [], spec: { policy: NAME_WALL } }, async (box) => {
    const rows = WAYS.flatMap((way) => CLIENTS.map((client) => ({ way, client })));
    await Promise.all([0, 1, 2, 3].map(async () => {
      for (let row = rows.shift(); row !== undefined; row = rows.shift()) await askAll(box, row);
    }));
  });
  decisions = readDecisions(run);
});
afterAll(async () => {
  await lab.stop();
  rmSync(files, { recursive: true, force: true });
});

it.each(["name", "misnamed"])("the control: without a firewall the other %s is served", (host) => {
  expect(open.get(host)).toMatchObject({ exitCode: 0, stderr: "" });
});

describe.each(WAYS)("%s of the proxy", (way) => {
  it.each(CLIENTS)("$name reaches an allowed name, with a certificate that it verifies", (client) => {
    expect(outcomes.get(`${way} ${client.name}`)).toMatch(client.works);
  });

  it.each(CLIENTS)("$name is refused a name that is not allowed, and that is written down", (client) => {
    const host = hostOf("unlisted", way, client);
    expect(outcomes.get(host)).toMatch(way === "told" ? client.says.proxy : client.says.name);
    expect(refusalsOf(host)).toContain(`${way === "told" ? "https-connect" : "dns"} not_allowed`);
  });

  it.each(CLIENTS)("$name is refused an allowed address under another name, and that is written down", (client) => {
    const host = hostOf("misnamed", way, client);
    expect(outcomes.get(host)).toMatch(way === "told" ? client.says.proxy : client.says.tls);
    expect(refusalsOf(host)).toContain(`${way === "told" ? "https-connect" : "tls-sni"} not_allowed`);
  });
});

async function askAll(box: HeldBox, { way, client }: { way: Way; client: Client }): Promise<void> {
  const trust = { caBundle: CA, javaOptions: `-Djavax.net.ssl.trustStore=${files}/trust.p12 -Djavax.net.ssl.trustStorePassword=changeit` };
  const told = describeProxyEnvironment({ httpUrl: "http://127.0.0.1:3128", socksUrl: "socks5h://127.0.0.1:8081", direct: DIRECT_LOOPBACK, ...trust });
  const untold = [...CA_VARIABLES.map((name) => [name, CA] as const), ["JAVA_TOOL_OPTIONS", trust.javaOptions] as const];
  const variables = [...(way === "told" ? told : untold), ["HOME", join(files, "clones")], ["GIT_TERMINAL_PROMPT", "0"], ["npm_config_update_notifier", "false"], ["npm_config_userconfig", "/dev/null"], ["PIP_CONFIG_FILE", "/dev/null"]];
  const ask = async (host: string): Promise<string> => {
    const { exitCode, stdout, stderr } = await box.exec(["env", ...variables.map(([name, value]) => `${name}=${value}`), ...client.argv(host, files)]);
    return `${exitCode} ${stdout}${stderr.replaceAll(/^Picked up JAVA_TOOL_OPTIONS.*\n/gm, "")}`.replace(/\n$/, "");
  };
  outcomes.set(`${way} ${client.name}`, await ask(client.allowed ?? ALLOWED));
  for (const kind of ["unlisted", "misnamed"] as const) outcomes.set(hostOf(kind, way, client), await ask(hostOf(kind, way, client)));
  // The next way clones the same.
  rmSync(join(files, "clones", client.allowed ?? ALLOWED), { recursive: true, force: true });
}

function refusalsOf(host: string): string[] {
  return decisions.filter((decision) => decision.host === host && decision.action === "deny").map(({ protocol, reason }) => `${protocol} ${reason}`);
}

function npm(): string {
  return realpathSync(execFileSync("which", ["npm"], { encoding: "utf8", env: { PATH: "/usr/local/bin:/usr/bin:/bin" } }).trim());
}

/** What the programs in the box need, readable for its agent. */
async function makeFiles(): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), "agentbox-clients-"));
  chmodSync(directory, 0o755);
  cpSync(join(FIXTURES, "client.mjs"), join(directory, "client.mjs"));
  await mustRun(["javac", "-d", directory, join(FIXTURES, "Fetch.java")]);
  mkdirSync(join(directory, "clones"));
  chmodSync(join(directory, "clones"), 0o1777);
  return directory;
}

/** Has one address of the lab answered by the server of the fixtures. */
async function serveStreams(ownLab: NamespaceLab): Promise<void> {
  const { labNamespace, caFile } = ownLab;
  await mustRun(["keytool", "-importcert", "-noprompt", "-alias", "lab", "-file", caFile, "-keystore", join(files, "trust.p12"), "-storepass", "changeit"]);
  // The lab ends what runs in its namespace.
  const server = spawn("ip", ["netns", "exec", labNamespace, process.execPath, join(FIXTURES, "streams-server.ts"), dirname(caFile), String(STREAMS_PORT)], { stdio: ["ignore", "pipe", "inherit"] });
  await once(server.stdout, "data");
  for (const [tool, address] of [["iptables", ADDRESSES[0]], ["ip6tables", ADDRESSES[1]]] as const) {
    const { exitCode, stderr } = await ownLab.execInLab([tool, "-t", "nat", "-A", "PREROUTING", "-d", address, "-p", "tcp", "--dport", "443", "-j", "REDIRECT", "--to-ports", String(STREAMS_PORT)]);
    if (exitCode !== 0) throw new Error(stderr);
  }
}
