import { readFileSync, writeSync } from "node:fs";
import { controlRequestSchema } from "../policy/keeper-message.ts";
import { askKeeper, NoKeeperError } from "./keeper-client.ts";

const [STDIN, STDOUT, STDERR] = [0, 1, 2] as const;
/** Exit codes: a reply that refuses, and no keeper to ask. */
const [REFUSED, UNAVAILABLE] = [78, 69] as const;

/** The way into a running box: one request on standard input, one reply on standard output. Run under the keeper's uid. */
async function main(): Promise<number> {
  const request = controlRequestSchema.safeParse(parseInput(readFileSync(STDIN, "utf8")));
  if (!request.success) {
    writeAll(STDERR, `agentbox: the request is not one of this version: ${request.error.issues[0]?.message ?? ""}\n`);
    return REFUSED;
  }
  try {
    const reply = await askKeeper(request.data);
    writeAll(STDOUT, `${JSON.stringify(reply)}\n`);
    return reply.ok ? 0 : REFUSED;
  } catch (error) {
    if (!(error instanceof NoKeeperError)) throw error;
    writeAll(STDERR, `agentbox: ${error.message}\n`);
    return UNAVAILABLE;
  }
}

function parseInput(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The schema says what is wrong with it.
    return undefined;
  }
}

function writeAll(fd: number, text: string): void {
  let rest = Buffer.from(text);
  while (rest.length > 0) rest = rest.subarray(writeSync(fd, rest));
}

process.exitCode = await main();
