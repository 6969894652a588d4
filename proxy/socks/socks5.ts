import { quote } from "../../policy/parsed.ts";
import { type Asked, judgeUnreadable } from "../access/judgement.ts";
import { reach, type Reached } from "../access/reach.ts";
import { KeptBytes } from "../http/kept-bytes.ts";
import { describeClient } from "../net/client.ts";
import type { Connection, Reader } from "../net/connection.ts";
import { leave } from "../net/leave.ts";
import { describeTunnel } from "../tunnel/tunnel-use.ts";
import { LIMITS, type WebContext } from "../web-context.ts";
import { readGreeting, readRequest, renderReply, REPLY, type SocksRequest } from "./socks-frame.ts";

const CONNECT = 1;
const NO_AUTHENTICATION = Buffer.from([5, 0]);
const NO_METHOD = Buffer.from([5, 0xff]);
const GRANTED = renderReply(REPLY.granted);

/** Serves SOCKS 5 (RFC 1928) to a client that has just come: CONNECT, without authentication. */
export function serveSocks(client: Connection, context: WebContext): void {
  client.read(new Handshake(client, context));
}

class Handshake implements Reader {
  private readonly client: Connection;
  private readonly context: WebContext;
  private readonly kept = new KeptBytes();
  private readonly timer: NodeJS.Timeout;
  private greeted = false;

  constructor(client: Connection, context: WebContext) {
    this.client = client;
    this.context = context;
    this.timer = setTimeout(() => this.refuse(`the request is not whole after ${LIMITS.headMs / 1000} s`), LIMITS.headMs);
  }

  onBytes(bytes: Buffer): boolean {
    this.kept.add(bytes, 0, bytes.length);
    return (this.greeted || this.greet()) && this.takeRequest();
  }

  onEnd(): void {
    this.client.destroy();
  }

  onClose(): void {
    clearTimeout(this.timer);
  }

  /** True where there may be a request already. */
  private greet(): boolean {
    const read = readGreeting(this.kept.bytes);
    if (read.kind === "need-more") return true;
    if (read.kind === "wrong") return this.refuse(read.what);
    this.kept.drop(read.end);
    this.greeted = true;
    if (!read.value.open) return this.refuse("the client wants to authenticate itself", NO_METHOD);
    this.client.write(NO_AUTHENTICATION);
    return true;
  }

  private takeRequest(): boolean {
    if (!this.greeted) return true;
    const read = readRequest(this.kept.bytes);
    if (read.kind === "need-more") return true;
    if (read.kind === "wrong") return this.refuse(read.what, read.reply === undefined ? undefined : renderReply(read.reply));
    this.kept.drop(read.end);
    const { command, port, host } = read.value;
    if (command !== CONNECT) return this.refuse(`there is no command ${command}`, renderReply(REPLY.commandUnknown));
    if (port === 0) return this.refuse(`${quote(host)} is asked for without a port`, renderReply(REPLY.failure));
    clearTimeout(this.timer);
    void this.connect({ host, port });
    return false;
  }

  private async connect({ host, port }: Pick<SocksRequest, "host" | "port">): Promise<void> {
    const { client, context } = this;
    const use = describeTunnel(context.access, { via: "socks", host, port });
    const asked: Asked = { protocol: "socks5-tcp", method: null, host, port, client: describeClient(client), use };
    const reached = await reach(context, asked);
    if (!reached.ok) {
      leave(client, renderReply(codeOf(reached)));
      return;
    }
    const { admitted, upstream } = reached;
    if (client.isClosed) {
      upstream.destroy();
      return;
    }
    client.write(GRANTED);
    context.openTunnel(client, this.kept.take(), { asked, admitted, upstream });
  }

  private refuse(what: string, words?: Buffer): false {
    clearTimeout(this.timer);
    this.context.access.refuse({ protocol: "socks5-tcp", method: null, port: null, client: describeClient(this.client) }, judgeUnreadable("(no host)", undefined, what), []);
    leave(this.client, words);
    return false;
  }
}

function codeOf(reached: Exclude<Reached, { ok: true }>): number {
  if (reached.denial !== undefined) return REPLY.notAllowed;
  return "code" in reached && reached.code === "ECONNREFUSED" ? REPLY.refused : REPLY.hostUnreachable;
}
