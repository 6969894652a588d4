import type { Decision } from "../../policy/decide.ts";
import { renderJsonDenial, renderTextDenial } from "../../policy/denial.ts";
import type { Admitted, Outcome } from "../access/access.ts";
import { type Asked, judgeHost, judgeUnreadable } from "../access/judgement.ts";
import { renderAuthorization } from "../access/upstream-tunnel.ts";
import { serveConnect } from "../tunnel/connect.ts";
import { describeOutcome } from "./answer.ts";
import { Exchange } from "./exchange.ts";
import { renderAuthority, writeRequestHead } from "./head-writer.ts";
import type { HttpSession } from "./http-session.ts";
import { LastRequest } from "./last-request.ts";
import type { RequestHead } from "./request-head.ts";
import type { Stretch } from "./request-reader.ts";
import { readRoute } from "./request-route.ts";

/** What the log says in place of a host. */
const MALFORMED_HOST = '"(malformed request)"';

/** Judges a request, and begins, answers or hands on what it asks for; at once where nothing has to be resolved. */
export function judgeRequest(session: HttpSession, head: RequestHead, { bytes, from, length, to }: Stretch): void {
  const { last } = session;
  if (last?.isSame(head, bytes, from) === true) return admit(session, head, last.asked, { bytes, from, length });
  const route = readRoute(head, bytes, from, session.place);
  switch (route.kind) {
    case "malformed":
      return session.refuse(400, route.complaint);
    case "socket":
      return refuseSocket(session);
    case "tunnel":
      return openTunnel(session, route, Buffer.from(bytes.subarray(from + length, to)));
    case "request":
      return admit(session, head, route.asked, { bytes, from, length });
  }
}

function admit(session: HttpSession, head: RequestHead, asked: Asked, { bytes, from, length }: Omit<Stretch, "to">): void {
  const outcome = session.listener.context.access.admit(asked);
  if (!(outcome instanceof Promise)) return act(session, head, asked, outcome, { bytes, from, length });
  // The bytes are overwritten as soon as this returns.
  const kept = Buffer.from(bytes.subarray(from, from + length));
  void outcome.then((later) => {
    if (session.isGone) return undefined;
    act(session, head, asked, later, { bytes: kept, from: 0, length });
    return session.proceed();
  });
}

/** Writes down that something was no request. */
export function refuseMalformed({ listener, place: { inside, client } }: HttpSession, complaint: string): void {
  const port = inside?.port;
  listener.context.access.refuse({ protocol: inside?.protocol ?? "http", method: null, port: port ?? null, client }, judgeUnreadable(MALFORMED_HOST, port, complaint), []);
}

function act(session: HttpSession, head: RequestHead, asked: Asked, outcome: Outcome, { bytes, from, length }: Omit<Stretch, "to">): void {
  const { context } = session.listener;
  if (!outcome.ok) return session.answer(describeOutcome(asked, outcome));
  const site = session.scheme === "https" ? undefined : context.access.policy.upstream;
  const proxy = site === undefined ? undefined : { authorization: renderAuthorization(site) };
  const known = recall(session, head, asked, outcome, { bytes, from });
  const written = writeRequestHead(head, bytes, from, length, { authority: known.authority, proxy });
  session.begin(new Exchange(session, head, { asked, admitted: outcome, key: known.key, written, site, length }));
}

/** What the same request came to before, where there was one; remembered once a client asks a second time. */
function recall(session: HttpSession, head: RequestHead, asked: Asked, admitted: Admitted, { bytes, from }: Pick<Stretch, "bytes" | "from">): { authority: string; key: string } {
  const { last, scheme } = session;
  if (last?.asked === asked) return last;
  const known = { authority: renderAuthority(admitted.host, admitted.port, scheme), key: `${scheme} ${admitted.name} ${admitted.port}` };
  const isPlain = head.hasHost && !head.isUpgrade && (asked.use.claims?.length ?? 0) === 0;
  if (isPlain && session.served > 0) session.last = new LastRequest(head, bytes, from, { asked, ...known });
  return known;
}

/** CONNECT: what it names beside its target is judged here, where it is seen. */
function openTunnel(session: HttpSession, { asked, target }: { asked: Asked; target: string }, rest: Buffer): void {
  const { context } = session.listener;
  const { access } = context;
  if ((asked.use.claims?.length ?? 0) > 0) {
    const verdict = judgeHost(access.policy, asked);
    if (verdict.action === "deny") return session.answer(renderTextDenial(access.refuse(asked, verdict.decision, []).denial));
  }
  session.detach();
  serveConnect(session.client, { target, rest, client: asked.client }, context);
}

function refuseSocket(session: HttpSession): void {
  const decision: Decision = { ...judgeUnreadable("localhost", undefined, "no socket of this machine is reached through the proxy"), reason: "unix_socket_unsupported" };
  const { denial } = session.listener.context.access.refuse({ protocol: "http", method: null, port: null, client: session.place.client }, decision, []);
  session.answer(renderJsonDenial(denial));
}
