import { renderHostPort, type Upstream } from "../../policy/proxy-words.ts";
import type { Admitted } from "../access/access.ts";
import type { Dialled } from "../access/dial.ts";
import { describeClient } from "../net/client.ts";
import type { Connection } from "../net/connection.ts";
import { Slots } from "../net/slots.ts";
import type { WebContext } from "../web-context.ts";
import { HttpSession } from "./http-session.ts";
import type { Place } from "./request-route.ts";
import { UpstreamConnections } from "./upstream-connections.ts";

const TICK_MS = 1000;
const NOTHING = Buffer.alloc(0);

/** What all clients that speak HTTP share: idle connections to servers, and one clock for all limits. */
export class HttpListener {
  readonly context: WebContext;
  readonly pool = new UpstreamConnections();
  /** Seconds while anybody is connected. A timer for each request would cost more than the request. */
  tick = 0;
  private readonly sessions = new Slots<HttpSession>();
  private timer: NodeJS.Timeout | undefined;

  constructor(context: WebContext) {
    this.context = context;
  }

  serve(client: Connection, first: Buffer, place: Place): void {
    const session = new HttpSession(client, this, place);
    this.sessions.add(session);
    this.timer ??= setInterval(() => this.sweep(), TICK_MS).unref();
    session.start(first);
  }

  /** Others have its connection now, or it is closed. */
  forget(session: HttpSession): void {
    this.sessions.delete(session);
    takeOpened(session.place, Number.NaN);
  }

  /** Opens the way to an admitted place, for a head that was written for it: to the site's proxy it names more. */
  async dial(admitted: Admitted, place: Place, writtenFor: Upstream | undefined): Promise<Dialled> {
    const { access, dialler } = this.context;
    const { inside } = place;
    if (inside?.scheme === "https") return await inside.openUpstream(admitted);
    const { upstream } = access.policy;
    if (describeUpstream(upstream) !== describeUpstream(writtenFor)) return { ok: false, status: 502, why: "the way out changed meanwhile" };
    if (upstream !== undefined) return await dialler.dialUpstream(upstream);
    const connection = takeOpened(place, access.policy.epoch);
    return connection === undefined ? await dialler.dial(admitted, undefined) : { ok: true, connection };
  }

  /** Closes the idle connections to servers, when no request will come any more. */
  close(): void {
    // None was opened under a policy of this number.
    this.pool.sweep(this.tick, Number.NaN);
  }

  private sweep(): void {
    this.tick += 1;
    for (const session of this.sessions.list()) session.sweep(this.tick);
    this.pool.sweep(this.tick, this.context.access.policy.epoch);
    if (this.sessions.size > 0 || this.pool.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }
}

/** Takes the connection that a tunnel brought along, where it is as good as a new one; ends it where it is not. */
function takeOpened({ inside }: Place, epoch: number): Connection | undefined {
  if (inside?.scheme !== "http" || inside.opened === undefined) return undefined;
  const { opened } = inside;
  inside.opened = undefined;
  if (opened.epoch === epoch && opened.connection.isFresh) return opened.connection;
  opened.connection.destroy();
  return undefined;
}

function describeUpstream(upstream: Upstream | undefined): string {
  return upstream === undefined ? "" : `${upstream.tls} ${renderHostPort(upstream)} ${upstream.user}:${upstream.password}`;
}

const listeners = new WeakMap<WebContext, HttpListener>();

function listenerOf(context: WebContext): HttpListener {
  const known = listeners.get(context) ?? new HttpListener(context);
  listeners.set(context, known);
  return known;
}

/** Serves a client of the proxy's own port: requests that name the whole URI, and CONNECT. */
export function serveHttp(client: Connection, context: WebContext): void {
  listenerOf(context).serve(client, NOTHING, { inside: undefined, client: describeClient(client) });
}

/** Serves HTTP that was found elsewhere: on a redirected port, in a tunnel, in opened TLS. */
export function serveInside(context: WebContext): WebContext["serveInside"] {
  return (client, first, inside) => listenerOf(context).serve(client, first, { inside, client: inside.client });
}

/** Closes what is kept open for further requests. */
export function closeHttp(context: WebContext): void {
  listeners.get(context)?.close();
}
