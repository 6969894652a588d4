import { renderTextDenial } from "../../policy/denial.ts";
import { parseHostPort, renderHost } from "../../policy/host-name.ts";
import { quote } from "../../policy/parsed.ts";
import { type Asked, judgeUnreadable } from "../access/judgement.ts";
import { reach } from "../access/reach.ts";
import { type Answer, makeAnswer, renderAnswer } from "../http/answer.ts";
import type { Connection, Reader } from "../net/connection.ts";
import { leave } from "../net/leave.ts";
import type { WebContext } from "../web-context.ts";
import { describeTunnel } from "./tunnel-use.ts";

/** A request for a tunnel: the target as it stood in the request line, and the bytes behind the head, which are kept. */
export type ConnectRequest = { target: string; rest: Buffer; client: Asked["client"] };

const ESTABLISHED = Buffer.from("HTTP/1.1 200 Connection Established\r\n\r\n");
/** The client waits for an answer, and is not read meanwhile. */
const WAITING: Reader = { onBytes: () => false, onEnd: () => undefined, onClose: () => undefined };

/**
 * Answers CONNECT (RFC 9110 section 9.3.6) on a connection that its caller reads no more: with 200 once the
 * upstream connection is open, and never before.
 */
export function serveConnect(client: Connection, request: ConnectRequest, context: WebContext): void {
  client.handTo(WAITING);
  const target = parseHostPort(request.target);
  const port = target.ok ? target.value.port : undefined;
  if (target.ok && port !== undefined) {
    const host = renderHost(target.value.host);
    const use = describeTunnel(context.access, { via: "connect", host, port });
    void connect(client, { asked: { protocol: "https-connect", method: "CONNECT", host, port, client: request.client, use }, rest: request.rest }, context);
    return;
  }
  const detail = target.ok ? `the target ${quote(request.target)} has no port` : target.complaint.what;
  context.access.refuse({ protocol: "https-connect", method: "CONNECT", port: null, client: request.client }, judgeUnreadable(quote(request.target), undefined, detail), []);
  refuse(client, makeAnswer(400, `AgentBox does not understand this CONNECT: ${detail}; write CONNECT HOST:PORT`));
}

async function connect(client: Connection, { asked, rest }: { asked: Asked; rest: Buffer }, context: WebContext): Promise<void> {
  const reached = await reach(context, asked);
  if (!reached.ok) {
    refuse(client, reached.denial === undefined ? makeAnswer(reached.status, `AgentBox cannot reach ${asked.host}:${asked.port}: ${reached.why}`) : renderTextDenial(reached.denial));
    return;
  }
  const { admitted, upstream } = reached;
  if (client.isClosed) {
    upstream.destroy();
    return;
  }
  client.write(ESTABLISHED);
  context.openTunnel(client, rest, { asked, admitted, upstream });
}

function refuse(client: Connection, answer: Answer): void {
  leave(client, renderAnswer(answer, { closes: true, isHead: false }));
}
