import type { Admitted, Failure } from "../access/access.ts";
import { renderAuthority } from "../http/head-writer.ts";
import { askHttp1, makeAgent } from "./http1-upstream.ts";
import { askHttp2, beginHttp2 } from "./http2-upstream.ts";
import type { Cancel, UpstreamAsk } from "./upstream-ask.ts";
import type { UpstreamWay } from "./upstream-way.ts";

/** A way on which requests can be sent, side by side. */
export type Opened = { ok: true; epoch: number; isUsable: () => boolean; /** Nothing is open on it any more. */ isDone: () => boolean; send: (ask: UpstreamAsk) => Cancel; /** Uses it for nothing new. */ retire: () => void; close: () => void };

/** The connections that serve one client of HTTP/2: by HTTP/2 all of its requests share one, where the server speaks that. */
export class Http2Upstreams {
  private readonly way: UpstreamWay;
  private readonly all = new Set<Opened>();
  private opening: { epoch: number; opened: Promise<Opened | Failure> } | undefined;
  private current: Opened | undefined;
  private isOver = false;

  constructor(way: UpstreamWay) {
    this.way = way;
  }

  /** Opens a way to the admitted place, or gives the one that is open under this policy. */
  async open(admitted: Admitted): Promise<Opened | Failure> {
    const { epoch } = admitted;
    const { current } = this;
    if (current?.epoch === epoch && current.isUsable()) return current;
    current?.retire();
    this.current = undefined;
    // Requests that come meanwhile wait for the same one.
    if (this.opening?.epoch !== epoch) this.opening = { epoch, opened: this.begin(admitted) };
    const { opening } = this;
    const opened = await opening.opened;
    if (this.opening === opening) this.opening = undefined;
    return opened;
  }

  /** The client is gone. */
  close(): void {
    this.isOver = true;
    for (const opened of this.all) opened.close();
    this.all.clear();
    this.way.close();
  }

  private async begin(admitted: Admitted): Promise<Opened | Failure> {
    const encrypted = await this.way.encrypt(admitted, ["h2", "http/1.1"]);
    if (!encrypted.ok) return { ok: false, status: encrypted.status, why: encrypted.why };
    const opened = encrypted.protocol === "h2" ? openHttp2(encrypted.tls, admitted) : openHttp1(encrypted, this.way, admitted);
    if (this.isOver) opened.close();
    // Of those before only what is still under way is of interest.
    for (const other of this.all) if (other.isDone()) this.all.delete(other);
    this.all.add(opened);
    this.current = opened;
    return opened;
  }
}

type Verified = Extract<Awaited<ReturnType<UpstreamWay["encrypt"]>>, { ok: true }>;

function openHttp2(tls: Verified["tls"], { host, port, epoch }: Admitted): Opened {
  const session = beginHttp2(tls, renderAuthority(host, port, "https"));
  return {
    ok: true,
    epoch,
    isUsable: () => !session.closed && !session.destroyed,
    isDone: () => session.destroyed,
    send: (ask) => askHttp2(session, ask),
    // What is under way may end.
    retire: () => session.close(),
    close: () => session.destroy(),
  };
}

function openHttp1(verified: Verified, way: UpstreamWay, admitted: Admitted): Opened {
  let first: Verified | undefined = verified;
  const agent = makeAgent(async () => {
    const taken = first;
    first = undefined;
    return taken ?? (await way.encrypt(admitted, ["http/1.1"]));
  });
  return {
    ok: true,
    epoch: admitted.epoch,
    isUsable: () => true,
    isDone: () => Object.keys(agent.sockets).length === 0 && Object.keys(agent.freeSockets).length === 0,
    send: (ask) => askHttp1(agent, ask),
    retire: () => {
      first?.tls.destroy();
      first = undefined;
      for (const idle of Object.values(agent.freeSockets)) for (const socket of idle ?? []) socket.destroy();
    },
    close: () => {
      first?.tls.destroy();
      agent.destroy();
    },
  };
}
