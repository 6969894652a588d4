import { createServer } from "node:net";

/** A port of loopback that was free a moment ago; each call gives another one. */
export async function findFreePort(address = "127.0.0.1"): Promise<number> {
  for (;;) {
    const server = createServer();
    const port = await new Promise<number>((resolve) => {
      server.listen(0, address, () => {
        const where = server.address();
        resolve(typeof where === "object" && where !== null ? where.port : 0);
      });
    });
    await new Promise((resolve) => server.close(resolve));
    if (!given.has(port)) {
      given.add(port);
      return port;
    }
  }
}

const given = new Set<number>();
