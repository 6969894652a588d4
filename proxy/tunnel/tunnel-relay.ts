import type { Flow, FlowInput, Flows } from "../access/flows.ts";
import type { Connection, Reader } from "../net/connection.ts";
import { Pump } from "../net/relay.ts";
import type { Hello } from "../tls/client-hello.ts";
import type { Passage } from "../web-context.ts";
import { HandshakeWatch } from "./handshake-watch.ts";

/** Whoever is handed a connection has to read it at once; until then nothing of it goes anywhere. */
const NOBODY: Reader = { onBytes: () => false, onEnd: () => undefined, onClose: () => undefined };

/** What a relay is made of; `early` counts the client's bytes that were read already and belong to it. */
type RelayParts = Pick<Passage, "asked" | "admitted"> & { client: Connection; upstream: Connection; flows: Flows; early: number };

/**
 * The two directions of a tunnel, and the flow that a new policy may cut. The server's bytes go to the client from
 * the start, since in SSH or SMTP it is the server that speaks first; the client's wait for `passOn`.
 */
export class TunnelRelay implements FlowInput {
  readonly client: Connection;
  asked: Passage["asked"];
  readonly admitted: Passage["admitted"];
  private readonly upstream: Connection;
  private readonly flow: Flow;
  private readonly upBefore: number;
  private readonly downBefore: number;
  private readonly down: Pump;
  private up: Pump | undefined;
  private open = 2;

  constructor({ client, upstream, flows, asked, admitted, early }: RelayParts) {
    this.client = client;
    this.upstream = upstream;
    this.upBefore = client.bytesIn - early;
    this.downBefore = upstream.bytesIn;
    this.asked = asked;
    this.admitted = admitted;
    this.flow = flows.begin(this);
    this.down = new Pump(upstream, client, () => this.close());
    upstream.read(this.down);
  }

  /** Hands the client's first bytes on, and from now on all others; false if the client has to wait. `asked` is what is known by now. */
  passOn(first: Buffer, asked: Passage["asked"]): boolean {
    const up = this.startUp(asked);
    this.client.handTo(up);
    return first.length === 0 || up.onBytes(first);
  }

  /** Hands a hello on, and all that follows. `refuse` is told of a second hello that is not the first again. */
  passHello(first: Buffer, asked: Passage["asked"], { hello, refuse }: { hello: Hello; refuse: (detail: string) => void }): boolean {
    // A server that has ended already will ask for nothing.
    if (this.upstream.isEnded) return this.passOn(first, asked);
    return new HandshakeWatch({ client: this.client, upstream: this.upstream, up: this.startUp(asked), down: this.down, hello, refuse }).begin(first);
  }

  /** Tells the server that the client's bytes, all handed on, were the last. */
  finish(): void {
    this.up?.onEnd();
  }

  /** Gives the tunnel away: those inside it tell what it carries. */
  handOver(): Connection {
    this.upstream.handTo(NOBODY);
    this.flow.forget();
    return this.upstream;
  }

  /** Ends it, and leaves the client to whoever has last words for it. */
  abandon(): void {
    this.upstream.handTo(NOBODY);
    this.upstream.destroy();
    this.writeDown();
  }

  cut(): void {
    this.client.destroy(true);
    this.upstream.destroy(true);
  }

  private startUp(asked: Passage["asked"]): Pump {
    this.asked = asked;
    this.up = new Pump(this.client, this.upstream, () => this.close());
    return this.up;
  }

  private close(): void {
    this.open -= 1;
    if (this.open === 0) this.writeDown();
  }

  private writeDown(): void {
    this.flow.end({ bytesUp: this.up === undefined ? 0 : this.client.bytesIn - this.upBefore, bytesDown: this.upstream.bytesIn - this.downBefore });
  }
}
