import type { Use } from "../../policy/use.ts";
import { type Asked, judgeHost } from "../access/judgement.ts";
import { KeptBytes } from "../http/kept-bytes.ts";
import type { Connection, Reader } from "../net/connection.ts";
import { leave } from "../net/leave.ts";
import { ACCESS_DENIED } from "../tls/alert.ts";
import type { Hello } from "../tls/client-hello.ts";
import { objectToHello } from "../tls/hello-objection.ts";
import { LIMITS, type Passage, type WebContext } from "../web-context.ts";
import { type Flight, readFirstFlight } from "./first-flight.ts";
import { HTTP_1_1_REQUIRED } from "./goaway.ts";
import { TunnelRelay } from "./tunnel-relay.ts";

type Settled = Exclude<Flight, { kind: "need-more" }>;

/** Makes the function that looks at the first bytes of a passage, judges the names in them, and hands the rest to and fro. */
export function openTunnel(context: WebContext): WebContext["openTunnel"] {
  return (client, first, passage) => {
    if (passage.upstream === undefined) void dialAndOpen(context, { client, first, passage });
    else open(context, { client, first, passage, upstream: passage.upstream });
  };
}

type Arrival = { client: Connection; first: Buffer; passage: Passage };

async function dialAndOpen(context: WebContext, arrival: Arrival): Promise<void> {
  const dialled = await context.dialler.dial(arrival.passage.admitted, context.access.policy.upstream);
  if (dialled.ok) open(context, { ...arrival, upstream: dialled.connection });
  else arrival.client.destroy(true);
}

function open(context: WebContext, { client, first, passage, upstream }: Arrival & { upstream: Connection }): void {
  const { asked, admitted } = passage;
  const relay = new TunnelRelay({ client, upstream, flows: context.flows, asked, admitted, early: first.length });
  const opening = new Opening(context, passage, relay);
  client.handTo(opening);
  const go = admitted.opaque ? relay.passOn(first, asked) : first.length === 0 || opening.onBytes(first);
  if (go) client.resume();
}

function isIntercepted({ use }: Asked): boolean {
  return use.kind === "tunnel" && use.intercepted;
}

/** A tunnel whose client has not shown yet what it speaks. */
class Opening implements Reader {
  private readonly context: WebContext;
  private readonly passage: Passage;
  private readonly relay: TunnelRelay;
  private kept: KeptBytes | undefined;
  private needed = 1;
  private harmless = true;
  private timer: NodeJS.Timeout | undefined;

  private readonly refuseSecond = (detail: string): void => void this.refuse(detail, { reason: "host_mismatch", words: ACCESS_DENIED });

  constructor(context: WebContext, passage: Passage, relay: TunnelRelay) {
    this.context = context;
    this.passage = passage;
    this.relay = relay;
  }

  onBytes(bytes: Buffer): boolean {
    this.kept?.add(bytes, 0, bytes.length);
    const all = this.kept?.bytes ?? bytes;
    if (all.length < this.needed) return true;
    const flight = readFirstFlight(all);
    if (flight.kind !== "need-more") return this.settle(flight, all);
    this.needed = flight.bytes;
    this.harmless = flight.harmless;
    if (this.kept !== undefined) return true;
    this.kept = new KeptBytes();
    this.kept.add(bytes, 0, bytes.length);
    this.timer = setTimeout(() => this.refuse(`its first bytes are not whole after ${LIMITS.helloMs / 1000} s`), LIMITS.helloMs);
    return true;
  }

  onEnd(): void {
    // What came so far cannot become a request or a hello any more.
    if (!this.harmless) this.refuse("the TLS hello is not whole", { words: ACCESS_DENIED });
    else if (this.settle({ kind: "other" }, this.kept?.bytes ?? Buffer.alloc(0))) this.relay.finish();
  }

  onClose(): void {
    clearTimeout(this.timer);
    this.relay.abandon();
  }

  private settle(flight: Settled, bytes: Buffer): boolean {
    clearTimeout(this.timer);
    switch (flight.kind) {
      case "hello":
        return this.passHello(flight, bytes);
      case "http":
        return this.serveHttp(bytes);
      case "other":
        return this.passOther(bytes);
      case "http2":
        return this.refuse("HTTP/2 without TLS, whose hosts are not read", { words: HTTP_1_1_REQUIRED });
      case "malformed":
        return this.refuse(`a malformed TLS hello: ${flight.what}`, { words: ACCESS_DENIED });
    }
  }

  private passHello(hello: Hello, bytes: Buffer): boolean {
    const { access, intercept } = this.context;
    const { asked, admitted } = this.passage;
    const objection = objectToHello(hello, { host: admitted.host, refuseEch: access.policy.refuseEch });
    if (objection !== undefined) return this.refuse(objection, { reason: "host_mismatch", words: ACCESS_DENIED });
    const intercepted = access.intercepts(admitted.name);
    // Nothing new: the flow was judged with the same name, and is again by each new policy.
    if (hello.sni === admitted.name && !intercepted && !isIntercepted(asked)) return this.relay.passHello(bytes, asked, { hello, refuse: this.refuseSecond });
    const known = this.withUse(intercepted, hello.sni === undefined ? [] : [hello.sni]);
    const verdict = judgeHost(access.policy, known);
    if (verdict.action === "deny") return this.leave({ ...known, protocol: "tls-sni" }, verdict.decision, ACCESS_DENIED);
    if (!intercepted) return this.relay.passHello(bytes, known, { hello, refuse: this.refuseSecond });
    const upstream = this.relay.handOver();
    intercept(this.relay.client, Buffer.from(bytes), { asked, admitted, upstream });
    return false;
  }

  /** Every request in the tunnel is judged on its own; the first may have the connection that is there. */
  private serveHttp(bytes: Buffer): boolean {
    const { asked: { protocol, client }, admitted: { name, port } } = this.passage;
    const opened = { connection: this.relay.handOver(), epoch: this.context.access.policy.epoch };
    this.context.serveInside(this.relay.client, Buffer.from(bytes), { scheme: "http", opened, port, host: name, protocol, client });
    return false;
  }

  /** What nobody can read is judged as a tunnel without interception, whatever it was asked for. */
  private passOther(bytes: Buffer): boolean {
    const { access } = this.context;
    const known = this.withUse(false, []);
    const verdict = judgeHost(access.policy, known);
    return verdict.action === "deny" ? this.leave(known, verdict.decision) : this.relay.passOn(bytes, known);
  }

  private withUse(intercepted: boolean, claims: readonly string[]): Asked {
    const { asked } = this.passage;
    const use: Use = { kind: "tunnel", via: asked.use.kind === "tunnel" ? asked.use.via : "connect", intercepted, claims };
    return { ...asked, use };
  }

  private refuse(detail: string, { reason = "denied", words }: { reason?: "denied" | "host_mismatch"; words?: Buffer } = {}): false {
    const asked: Asked = { ...this.passage.asked, protocol: "tls-sni" };
    const { action, decision } = judgeHost(this.context.access.policy, asked);
    return this.leave(asked, action === "deny" ? decision : { ...decision, action: "deny", reason, detail }, words);
  }

  private leave(asked: Asked, decision: Parameters<WebContext["access"]["refuse"]>[1], words?: Buffer): false {
    clearTimeout(this.timer);
    this.context.access.refuse(asked, decision, this.passage.admitted.addresses);
    this.relay.abandon();
    leave(this.relay.client, words);
    return false;
  }
}
