import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ConfigError, KnownError, UsageError } from "../policy/errors.ts";
import { parseProxySecrets, type ProxySecrets } from "../policy/proxy-secrets.ts";
import { collectWhenIdle } from "./idle-collection.ts";
import { type ProxyOptions, startProxy } from "./proxy.ts";

const DNS_PORT = 53;

/**
 * The resolver of a box, `--udp4 FD --udp6 FD --tcp FD --keeper SOCKET --log DIR`, and where names are judged its proxy
 * too, `--http FD --socks FD --web FD --tls FD --secrets FILE --site-proxy ADDRESS`; descriptors and addresses may be
 * repeated. It ends with the keeper's connection, and whoever started it starts it again: the sockets stay open meanwhile.
 */
async function main(argv: readonly string[]): Promise<void> {
  try {
    await startProxy({ ...readOptions(argv), upstreamPort: DNS_PORT, onEnd: end });
    const { gc } = globalThis;
    // Only there with --expose-gc.
    if (gc !== undefined) collectWhenIdle(() => gc({ type: "major", execution: "sync", flavor: "last-resort" }));
  } catch (error) {
    if (!(error instanceof KnownError)) throw error;
    process.stderr.write(`agentbox-proxy: ${error.message}\n`);
    leaveWord(argv, error.message);
    process.exitCode = error.exitCode;
  }
}

/** Nobody reads the standard error of a box's proxy; the last reason why it did not start lies beside its log. */
function leaveWord(argv: readonly string[], message: string): void {
  const dir = argv[argv.indexOf("--log") + 1];
  if (!argv.includes("--log") || dir === undefined) return;
  try {
    writeFileSync(join(dir, "proxy.log"), `${new Date().toISOString()} ${message}\n`, { mode: 0o600 });
  } catch {
    // Then there is nobody to tell.
  }
}

const MANY = { type: "string", multiple: true, default: [] as string[] } as const;
const ONE = { type: "string" } as const;
const OPTIONS = { udp4: MANY, udp6: MANY, tcp: MANY, keeper: ONE, log: ONE, http: MANY, socks: MANY, web: MANY, tls: MANY, secrets: ONE, "site-proxy": MANY } as const;

function readOptions(argv: readonly string[]): Pick<ProxyOptions, "datagrams" | "streams" | "keeperSocket" | "logDir" | "web"> {
  const { values } = parseArgs({ args: [...argv], options: OPTIONS });
  const { keeper, log, secrets, "site-proxy": siteProxy } = values;
  if (keeper === undefined || log === undefined) throw new UsageError({ what: "an option is missing", expected: "--keeper SOCKET and --log DIR" });
  const datagrams = [...values.udp4.map((text) => ({ fd: readDescriptor(text), family: 4 as const })), ...values.udp6.map((text) => ({ fd: readDescriptor(text), family: 6 as const }))];
  const web = { http: values.http.map(readDescriptor), socks: values.socks.map(readDescriptor), plain: values.web.map(readDescriptor), tls: values.tls.map(readDescriptor) };
  if (secrets === undefined && Object.values(web).some((descriptors) => descriptors.length > 0)) throw new UsageError({ what: "an option is missing", expected: "--secrets FILE beside the sockets of the web" });
  return {
    datagrams,
    streams: values.tcp.map((text) => ({ fd: readDescriptor(text) })),
    keeperSocket: keeper,
    logDir: log,
    web: secrets === undefined ? undefined : { ...web, siteProxy, secrets: readSecrets(secrets) },
  };
}

function readSecrets(file: string): ProxySecrets {
  const secrets = parseProxySecrets(readText(file));
  if (secrets === undefined) throw new ConfigError({ place: { file }, what: "this file is not what the command line writes", fix: "start the box again" });
  return secrets;
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new ConfigError({ place: { file }, what: `this file cannot be read (${error instanceof Error ? error.message : String(error)})`, fix: "start the box again" }, { cause: error });
  }
}

function readDescriptor(text: string): number {
  if (/^[0-9]{1,4}$/.test(text)) return Number(text);
  throw new UsageError({ what: `${text} is not a descriptor`, expected: "the number of an inherited socket" });
}

/** Without the keeper nothing can be opened, so nothing may be answered. */
function end(why: string): never {
  process.stderr.write(`agentbox-proxy: ${why}\n`);
  process.exit(1);
}

// Whoever started this process sends that to one that has come to nothing (entrypoint/start-proxy.ts).
process.on("SIGALRM", () => undefined);
await main(process.argv.slice(2));
