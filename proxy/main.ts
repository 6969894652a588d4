import { parseArgs } from "node:util";
import { KnownError, UsageError } from "../policy/errors.ts";
import { collectWhenIdle } from "./idle-collection.ts";
import { type ProxyOptions, startProxy } from "./proxy.ts";

const DNS_PORT = 53;

/**
 * The resolver of a box: `--udp4 FD --udp6 FD --tcp FD (repeated) --keeper SOCKET --log DIR`. It ends with
 * the keeper's connection, and whoever started it starts it again: the sockets stay open meanwhile.
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
    process.exitCode = error.exitCode;
  }
}

function readOptions(argv: readonly string[]): Pick<ProxyOptions, "datagrams" | "streams" | "keeperSocket" | "logDir"> {
  const number = { type: "string", multiple: true, default: [] as string[] } as const;
  const options = { udp4: number, udp6: number, tcp: number, keeper: { type: "string" }, log: { type: "string" } } as const;
  const { values } = parseArgs({ args: [...argv], options });
  const { keeper, log } = values;
  if (keeper === undefined || log === undefined) throw new UsageError({ what: "an option is missing", expected: "--keeper SOCKET and --log DIR" });
  const datagrams = [...values.udp4.map((text) => ({ fd: readDescriptor(text), family: 4 as const })), ...values.udp6.map((text) => ({ fd: readDescriptor(text), family: 6 as const }))];
  return { datagrams, streams: values.tcp.map((text) => ({ fd: readDescriptor(text) })), keeperSocket: keeper, logDir: log };
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
