import { parseArgs } from "node:util";
import { KnownError, UsageError } from "../../policy/errors.ts";
import { runByHand } from "./by-hand.ts";
import { serveOptionsSchema } from "./control-schema.ts";

/** The edge of the lab's own command line: `npm run lab -- …`, and `serve`, which the two attachments start. */
async function main(argv: readonly string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      engine: { type: "string", default: "docker" },
      image: { type: "string" },
      name: { type: "string", multiple: true, default: [] },
      socket: { type: "string" },
      state: { type: "string" },
      all: { type: "boolean", default: false },
    },
  });
  if (positionals[0] === "serve") await serve(positionals[1] ?? "");
  else await runByHand(positionals, values, (line) => process.stdout.write(`${line}\n`));
}

async function serve(text: string): Promise<void> {
  const options = serveOptionsSchema.parse(JSON.parse(text));
  const { startServer } = await import("./server.ts");
  const running = await startServer(options);
  process.stdout.write('{"ready":true}\n');
  const end = () => void running.close().finally(() => process.exit(0));
  process.once("SIGTERM", end).once("SIGINT", end);
  if (options.followStdin) process.stdin.resume().once("end", end);
}

/** parseArgs throws a TypeError whose message already names the option and the form expected. */
function asKnownError(error: unknown): unknown {
  const fromParser = error instanceof TypeError && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS");
  return fromParser ? new UsageError({ what: error.message, fix: "npm run lab -- help" }) : error;
}

try {
  await main(process.argv.slice(2));
} catch (thrown) {
  const error = asKnownError(thrown);
  if (!(error instanceof KnownError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = error.exitCode;
}
