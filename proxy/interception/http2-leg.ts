import { constants, performServerHandshake } from "node:http2";
import type { TLSSocket } from "node:tls";
import { endWhenGone } from "../net/dead-peer.ts";
import { LIMITS, type Passage, type WebContext } from "../web-context.ts";
import { Http2Exchange, type Http2Leg } from "./http2-exchange.ts";
import { Http2Upstreams } from "./http2-upstreams.ts";
import type { UpstreamWay } from "./upstream-way.ts";

/** Requests at a time, and fields of each. */
const MAX_STREAMS = 100;
const MAX_FIELDS = 256;
const IDLE_MS = 2 * 3_600_000;

/** Serves a client that speaks HTTP/2 inside opened TLS. */
export function serveHttp2(tls: TLSSocket, { context, passage, way }: { context: WebContext; passage: Passage; way: UpstreamWay }): void {
  // Nothing comes after one side's end.
  tls.allowHalfOpen = false;
  const settings = { maxConcurrentStreams: MAX_STREAMS, maxHeaderListSize: LIMITS.headBytes, enableConnectProtocol: false };
  const session = performServerHandshake(tls, { settings, maxHeaderListPairs: MAX_FIELDS, strictSingleValueFields: false });
  const leg: Http2Leg = { context, passage, upstreams: new Http2Upstreams(way) };
  // RFC 9113 section 3.4: the client's settings come first.
  const timer = setTimeout(() => session.destroy(), LIMITS.headMs);
  session.once("remoteSettings", () => clearTimeout(timer));
  session.setTimeout(IDLE_MS, () => session.destroy());
  session.on("error", () => undefined);
  endWhenGone(tls);
  session.on("stream", (stream, _headers, flags, raw) => void new Http2Exchange(leg, stream, { raw, ended: (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0 }));
  session.once("close", () => {
    clearTimeout(timer);
    leg.upstreams.close();
    tls.destroy();
  });
}
