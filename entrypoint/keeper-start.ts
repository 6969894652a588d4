import { enableCompileCache, flushCompileCache } from "node:module";
import { makeDoor } from "./keeper/listen.ts";

// usage: keeper.mjs PROXY_SOCKET | --warm-cache
const [, , socket = "--warm-cache"] = process.argv;
// The proxy starts beside this process and must find somebody: this comes before everything that takes time.
const door = socket === "--warm-cache" ? undefined : await makeDoor(socket, 0o660);
// Lies on the read-only root file system and belongs to root; see start.ts.
enableCompileCache(`${import.meta.dirname}/cache`);
const { main } = await import("./keeper/main.ts");

if (door === undefined) flushCompileCache();
else await main(door);
