import { randomInt } from "node:crypto";
import { createServer } from "node:net";

const given = new Set<number>();

/** A port that was free a moment ago; each call gives another one. Below those that the system gives to outgoing connections (ip_local_port_range), which would take it meanwhile. */
export async function findFreePort(address = "127.0.0.1"): Promise<number> {
  for (;;) {
    const port = randomInt(15_000, 32_000);
    if (!given.has(port) && (await isFree(port, address))) {
      given.add(port);
      return port;
    }
  }
}

async function isFree(port: number, address: string): Promise<boolean> {
  const server = createServer();
  const free = await new Promise<boolean>((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(port, address, () => resolve(true));
  });
  if (free) await new Promise((resolve) => server.close(resolve));
  return free;
}
