import { readFileSync, writeSync } from "node:fs";
import { connect } from "node:net";
import { CONTROL_SOCKET } from "../policy/keeper-paths.ts";
import { exchangeLine, NoKeeperError } from "./keeper-exchange.ts";

const [STDIN, STDOUT, STDERR] = [0, 1, 2] as const;
/** Exit codes: a reply that refuses, and no keeper to ask. */
const [REFUSED, UNAVAILABLE] = [78, 69] as const;

/**
 * The way into a running box: one request on standard input, one reply on standard output. Run under the keeper's uid. The
 * keeper judges the request, so that this program, which every change waits for, needs no schema to start with.
 */
async function main(): Promise<number> {
  // JSON has line ends between its words only.
  const question = readFileSync(STDIN, "utf8").replaceAll(/[\r\n]/g, " ");
  try {
    const reply = await exchangeLine(connect(CONTROL_SOCKET), question);
    writeAll(STDOUT, reply);
    return isAccepted(JSON.parse(reply)) ? 0 : REFUSED;
  } catch (error) {
    if (!(error instanceof NoKeeperError)) throw error;
    writeAll(STDERR, `agentbox: ${error.message}\n`);
    return UNAVAILABLE;
  }
}

function isAccepted(reply: unknown): boolean {
  return typeof reply === "object" && reply !== null && "ok" in reply && reply.ok === true;
}

function writeAll(fd: number, text: string): void {
  let rest = Buffer.from(text);
  while (rest.length > 0) rest = rest.subarray(writeSync(fd, rest));
}

process.exitCode = await main();
