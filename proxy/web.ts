import type { Server } from "node:net";
import type { Access } from "./access/access.ts";
import type { Dialler } from "./access/dial.ts";
import type { Flows } from "./access/flows.ts";
import { ConnectionLimit } from "./connection-limit.ts";
import { closeHttp, serveHttp, serveInside } from "./http/http-listener.ts";
import { describeClient } from "./net/client.ts";
import { type Connection, listenFor, type ListenOn } from "./net/connection.ts";
import { serveSocks } from "./socks/socks5.ts";
import { serveTls } from "./tls/tls-listener.ts";
import { openTunnel } from "./tunnel/tunnel.ts";
import type { WebContext } from "./web-context.ts";

/** Where each protocol is listened for; `plain` and `tls` take what the kernel leads there from ports 80 and 443. */
type WebListeners = Readonly<Record<"http" | "socks" | "plain" | "tls", readonly ListenOn[]>>;

export type WebParts = {
  access: Access;
  flows: Flows;
  dialler: Dialler;
  listeners: WebListeners;
  /** Makes what opens TLS; without it none is opened, and what a policy wants opened is not let through. */
  makeIntercept?: ((context: WebContext) => WebContext["intercept"]) | undefined;
  /** Open connections of clients at a time. */
  maxConnections?: number;
};

export type Web = { context: WebContext; close: () => void };

const NOTHING = Buffer.alloc(0);
const PLAIN_PORT = 80;
const TLS_PORT = 443;
const MAX_CONNECTIONS = 16_000;

/** Listens for all protocols of the web. Rejects with the system's error where one of the listeners cannot be had; then none is left. */
export async function startWeb({ access, flows, dialler, listeners, makeIntercept, maxConnections = MAX_CONNECTIONS }: WebParts): Promise<Web> {
  const context: WebContext = { access, flows, dialler, openTunnel: refuseEarly, serveInside: refuseEarly, intercept: refuseEarly };
  context.openTunnel = openTunnel(context);
  context.serveInside = serveInside(context);
  context.intercept = makeIntercept?.(context) ?? refuseEarly;
  const limit = new ConnectionLimit(maxConnections, access.log);
  const serve: Record<keyof WebListeners, (client: Connection) => void> = {
    http: (client) => serveHttp(client, context),
    socks: (client) => serveSocks(client, context),
    plain: (client) => context.serveInside(client, NOTHING, { scheme: "http", port: PLAIN_PORT, host: undefined, protocol: "http", client: describeClient(client) }),
    tls: (client) => serveTls(client, { port: TLS_PORT }, context),
  };
  const servers: Server[] = [];
  const close = (): void => {
    for (const server of servers) server.close();
    limit.destroyAll();
    closeHttp(context);
  };
  try {
    for (const kind of ["http", "socks", "plain", "tls"] as const) {
      for (const where of listeners[kind]) servers.push(await listenFor(where, (client) => limit.admit(client) && serve[kind](client)));
    }
  } catch (error) {
    close();
    throw error;
  }
  return { context, close };
}

/** What nobody serves is not let through by mistake. */
function refuseEarly(client: Connection): void {
  client.destroy(true);
}
