import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import type { TLSSocket } from "node:tls";
import { endWhenGone } from "../net/dead-peer.ts";
import { dropHopFields, type Fields } from "./http2-head.ts";
import { type Cancel, pipeBody, sendTrailers, type UpstreamAsk } from "./upstream-ask.ts";

/** Room for a body that is on its way from a server far off: of one stream, and of all together. */
const STREAM_WINDOW = 512 * 1024;
const SESSION_WINDOW = 4 * 1024 * 1024;
/** Fields of a response. */
const MAX_FIELDS = 512;
const IDLE_MS = 2 * 3_600_000;

/** Begins HTTP/2 on a verified connection. */
export function beginHttp2(tls: TLSSocket, authority: string): ClientHttp2Session {
  // In HTTP/2 nothing comes after one side's end.
  tls.allowHalfOpen = false;
  const options = { createConnection: () => tls, settings: { enablePush: false, initialWindowSize: STREAM_WINDOW }, maxHeaderListPairs: MAX_FIELDS, strictSingleValueFields: false };
  const session = connect(`https://${authority}`, options);
  session.on("error", () => undefined);
  endWhenGone(tls);
  session.setTimeout(IDLE_MS, () => session.destroy());
  // Its client may be gone by then.
  session.once("connect", () => session.destroyed || session.setLocalWindowSize(SESSION_WINDOW));
  return session;
}

/** Sends a request by HTTP/2. */
export function askHttp2(session: ClientHttp2Session, ask: UpstreamAsk): Cancel {
  const { head, authority, hasBody } = ask;
  const raw = [":method", head.method, ":scheme", "https", ":authority", authority, ":path", head.path, ...head.fields];
  const stream = session.request(raw, { endStream: !hasBody, waitForTrailers: hasBody });
  let answered = false;
  let trailers: Fields = [];
  // Told of by the close that follows.
  stream.on("error", () => undefined);
  stream.on("headers", (headers, _flags, fields) => ask.onInterim(headers[":status"] ?? 100, dropHopFields(fields)));
  stream.on("trailers", (_headers, _flags, fields) => (trailers = fields));
  stream.once("response", (headers, flags, fields) => {
    answered = true;
    const isEmpty = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    // Node ends the stream in the same way when the connection breaks off, but with a code.
    ask.onAnswer({ status: headers[":status"] ?? 0, fields: dropHopFields(fields), body: stream, isEmpty, isWhole: () => stream.rstCode === constants.NGHTTP2_NO_ERROR, trailers: () => trailers });
  });
  stream.once("wantTrailers", () => sendTrailers(stream, ask.trailers()));
  stream.once("close", () => {
    if (answered && stream.readableEnded) return;
    // With its connection a stream gets a code of Node's own, which the server did not say.
    if (session.destroyed) ask.onBroken({ why: "its server ended the connection before its response was whole", code: constants.NGHTTP2_INTERNAL_ERROR });
    else ask.onBroken({ why: "its server gave the request up", code: stream.rstCode });
  });
  if (hasBody) pipeBody(ask, stream);
  return (code) => cancel(stream, code);
}

function cancel(stream: ClientHttp2Stream, code: number): void {
  if (!stream.destroyed && !stream.closed) stream.close(code === constants.NGHTTP2_NO_ERROR ? constants.NGHTTP2_CANCEL : code);
}
