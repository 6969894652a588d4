import type { Decision } from "../../policy/decide.ts";
import { type Asked, judgeHost, judgeUnreadable } from "../access/judgement.ts";
import { reach } from "../access/reach.ts";
import { KeptBytes } from "../http/kept-bytes.ts";
import { describeClient } from "../net/client.ts";
import type { Connection, Reader } from "../net/connection.ts";
import { leave } from "../net/leave.ts";
import { TunnelRelay } from "../tunnel/tunnel-relay.ts";
import { describeTunnel } from "../tunnel/tunnel-use.ts";
import { LIMITS, type WebContext } from "../web-context.ts";
import { ACCESS_DENIED } from "./alert.ts";
import { type Hello, type HelloRead, readClientHello } from "./client-hello.ts";
import { NAMELESS, objectToHello } from "./hello-objection.ts";

/** Serves a client whose connection was redirected here: the name in its hello decides, since nobody told where it wanted to go. */
export function serveTls(client: Connection, { port }: { port: number }, context: WebContext): void {
  client.read(new Arrival(client, port, context));
}

class Arrival implements Reader {
  private readonly client: Connection;
  private readonly port: number;
  private readonly context: WebContext;
  private readonly kept = new KeptBytes();
  private needed = 1;
  private timer: NodeJS.Timeout;

  constructor(client: Connection, port: number, context: WebContext) {
    this.client = client;
    this.port = port;
    this.context = context;
    this.timer = setTimeout(() => client.destroy(), LIMITS.headMs);
  }

  onBytes(bytes: Buffer): boolean {
    if (this.kept.length === 0) this.limit();
    this.kept.add(bytes, 0, bytes.length);
    if (this.kept.length < this.needed) return true;
    const read = readClientHello(this.kept.bytes);
    if (read.kind !== "need-more") return this.settle(read);
    this.needed = read.bytes;
    return true;
  }

  onEnd(): void {
    if (this.kept.length === 0) this.client.destroy();
    else this.refuse("the TLS hello is not whole");
  }

  onClose(): void {
    clearTimeout(this.timer);
  }

  /** A connection that was opened ahead of its use may wait a while; a hello that has begun may not. */
  private limit(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.refuse(`the TLS hello is not whole after ${LIMITS.helloMs / 1000} s`), LIMITS.helloMs);
  }

  private settle(read: Exclude<HelloRead, { kind: "need-more" }>): false {
    clearTimeout(this.timer);
    if (read.kind === "not-tls") return this.refuse("this is not TLS");
    if (read.kind === "malformed") return this.refuse(`a malformed TLS hello: ${read.what}`);
    const { access } = this.context;
    if (read.sni === undefined) return this.refuse("the TLS hello has no server name", "host_mismatch");
    const host = read.sni;
    const asked: Asked = { ...this.describe(), host, use: describeTunnel(access, { via: "tls", host, port: this.port }) };
    const objection = objectToHello(read, { host: undefined, refuseEch: access.policy.refuseEch });
    const verdict = objection === undefined ? undefined : judgeHost(access.policy, asked);
    if (objection === undefined || verdict === undefined) void this.connect(asked, read);
    else this.deny(verdict.action === "deny" ? verdict.decision : { ...verdict.decision, action: "deny", reason: "host_mismatch", detail: objection });
    return false;
  }

  private async connect(asked: Asked, hello: Hello): Promise<void> {
    const { client, context } = this;
    if (asked.use.kind === "tunnel" && asked.use.intercepted) {
      const outcome = await context.access.admit(asked);
      if (outcome.ok) context.intercept(client, this.kept.take(), { asked, admitted: outcome, upstream: undefined });
      else this.end(outcome.denial !== undefined);
      return;
    }
    const reached = await reach(context, asked);
    if (!reached.ok) {
      this.end(reached.denial !== undefined);
      return;
    }
    const { admitted, upstream } = reached;
    if (client.isClosed) {
      upstream.destroy();
      return;
    }
    const relay = new TunnelRelay({ client, upstream, flows: context.flows, asked, admitted, early: this.kept.length });
    const refuse = (detail: string): void => {
      relay.abandon();
      this.deny({ ...judgeUnreadable(admitted.name, this.port, detail), reason: "host_mismatch" });
    };
    if (relay.passHello(this.kept.take(), asked, { hello, refuse })) client.resume();
  }

  private refuse(detail: string, reason: "denied" | "host_mismatch" = "denied"): false {
    clearTimeout(this.timer);
    this.deny({ ...judgeUnreadable(NAMELESS, this.port, detail), reason });
    return false;
  }

  private deny(decision: Decision): void {
    this.context.access.refuse(this.describe(), decision, []);
    this.end(true);
  }

  /** A refusal is said in TLS; that nobody answers looks as it does without a proxy. */
  private end(refused: boolean): void {
    if (refused) leave(this.client, ACCESS_DENIED);
    else this.client.destroy(true);
  }

  private describe(): Pick<Asked, "protocol" | "method" | "port" | "client"> {
    return { protocol: "tls-sni", method: null, port: this.port, client: describeClient(this.client) };
  }
}
