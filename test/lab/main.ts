import { serveOptionsSchema } from "./control-schema.ts";

const [verb, argument] = process.argv.slice(2);
if (verb === "serve") {
  const { startServer } = await import("./server.ts");
  const options = serveOptionsSchema.parse(JSON.parse(argument ?? "{}"));
  const running = await startServer(options);
  process.stdout.write('{"ready":true}\n');
  if (options.followStdin) process.stdin.resume().once("end", () => void running.close().finally(() => process.exit(0)));
}
