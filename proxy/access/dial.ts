import { connect as connectTls } from "node:tls";
import type { Address } from "../../policy/address.ts";
import { renderHost } from "../../policy/host-name.ts";
import { renderHostPort, type Upstream } from "../../policy/proxy-words.ts";
import { Connection } from "../net/connection.ts";
import type { Admitted } from "./access.ts";
import type { Found, Lookup } from "./lookup.ts";
import { askTunnel } from "./upstream-tunnel.ts";

/** A connection to an admitted place, or why there is none; `status` is that of HTTP, `code` the system's word where it has one. */
export type Dialled = { ok: true; connection: Connection } | { ok: false; status: 502 | 504; why: string; code?: string };

/** How long one address may take to answer; the next one is tried then. */
const CONNECT_LIMIT_MS = 10_000;
/** Of many addresses of a name only so many are tried. */
const MAX_TRIED = 4;

export type DialParts = {
  /** Finds the site's proxy itself. */
  lookup: Lookup;
  /** Certificates to trust beside the system's, for a site's proxy that speaks TLS. */
  ca?: string | undefined;
};

/** The only way out: connects to exactly the addresses that were judged, or through the site's proxy. */
export class Dialler {
  private readonly parts: DialParts;

  constructor(parts: DialParts) {
    this.parts = parts;
  }

  /** Opens a connection to an admitted place. Through the site's proxy it is a tunnel. */
  dial(place: Pick<Admitted, "addresses" | "host" | "port">, upstream: Upstream | undefined): Promise<Dialled> {
    const { addresses, port } = place;
    if (upstream !== undefined) return this.dialThrough(upstream, place);
    const [only] = addresses;
    return only !== undefined && addresses.length === 1 ? dialAddress(only, port) : dialAddresses(addresses, port);
  }

  /** Opens a connection to the site's proxy, for requests that name their target in full. */
  async dialUpstream(upstream: Upstream): Promise<Dialled> {
    const found: Found = upstream.host.kind === "address" ? { ok: true, addresses: [upstream.host.address], freshUntil: 0 } : await this.parts.lookup(upstream.host.name);
    if (!found.ok) return { ok: false, status: 502, why: `the site's proxy ${renderHost(upstream.host)} is not found: ${found.why}` };
    const dialled = await dialAddresses(found.addresses, upstream.port);
    if (!dialled.ok) return { ...dialled, why: `the site's proxy: ${dialled.why}` };
    return upstream.tls ? await this.encrypt(dialled.connection, upstream) : dialled;
  }

  private async dialThrough(upstream: Upstream, { host, port }: Pick<Admitted, "host" | "port">): Promise<Dialled> {
    const dialled = await this.dialUpstream(upstream);
    return dialled.ok ? await askTunnel(dialled.connection, { target: renderHostPort({ host, port }), upstream }) : dialled;
  }

  private async encrypt({ socket }: Connection, upstream: Upstream): Promise<Dialled> {
    const { promise, resolve } = Promise.withResolvers<Dialled>();
    const name = renderHost(upstream.host);
    const tls = connectTls({ socket, host: name, ca: this.parts.ca, ALPNProtocols: ["http/1.1"], rejectUnauthorized: true, ...(upstream.host.kind === "name" ? { servername: name } : {}) });
    tls.setTimeout(CONNECT_LIMIT_MS, () => tls.destroy(new Error("no answer")));
    tls.once("error", (error) => resolve({ ok: false, status: 502, why: `the site's proxy ${name} does not speak TLS as it should: ${error.message}` }));
    tls.once("secureConnect", () => {
      tls.setTimeout(0);
      resolve({ ok: true, connection: new Connection({ socket: tls }) });
    });
    return await promise;
  }
}

async function dialAddresses(addresses: readonly Address[], port: number): Promise<Dialled> {
  let last: Dialled = { ok: false, status: 502, why: "there is no address" };
  for (const address of addresses.slice(0, MAX_TRIED)) {
    last = await dialAddress(address, port);
    if (last.ok) return last;
  }
  return last;
}

function dialAddress({ text }: Address, port: number): Promise<Dialled> {
  const { promise, resolve } = Promise.withResolvers<Dialled>();
  const connection = new Connection();
  const { socket } = connection;
  const timer = setTimeout(() => {
    resolve({ ok: false, status: 504, why: `${text} does not answer` });
    socket.destroy();
  }, CONNECT_LIMIT_MS);
  socket.once("error", (error) => {
    clearTimeout(timer);
    const code = "code" in error ? String(error.code) : error.message;
    resolve({ ok: false, status: 502, why: `${text} cannot be reached: ${code}`, code });
  });
  socket.once("connect", () => {
    clearTimeout(timer);
    resolve({ ok: true, connection });
  });
  // The address is judged: no second one is tried beside it, and nothing is looked up.
  socket.setNoDelay(true);
  socket.connect({ host: text, port, autoSelectFamily: false });
  return promise;
}
