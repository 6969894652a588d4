import { constants, type ServerHttp2Stream } from "node:http2";
import type { Flow, FlowInput } from "../access/flows.ts";
import { type Asked, judgeUnreadable } from "../access/judgement.ts";
import { type Answer, describeFailure, describeOutcome, makeAnswer } from "../http/answer.ts";
import { renderAuthority } from "../http/head-writer.ts";
import type { Passage, WebContext } from "../web-context.ts";
import { countBytes, type Fields, findField, type Http2Head, readHttp2Head } from "./http2-head.ts";
import type { Http2Upstreams, Opened } from "./http2-upstreams.ts";
import { type Broken, type Cancel, joinTrailers, sendTrailers, stopUpload, type UpstreamAnswer } from "./upstream-ask.ts";

const { NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR } = constants;
/** What the log says in place of a host. */
const MALFORMED_HOST = '"(malformed request)"';

/** What all requests of one client share. */
export type Http2Leg = { context: WebContext; passage: Passage; upstreams: Http2Upstreams };

/** One request in HTTP/2, judged on its own, and its answer. */
export class Http2Exchange {
  private readonly leg: Http2Leg;
  private readonly stream: ServerHttp2Stream;
  private readonly hasBody: boolean;
  private readonly isHead: boolean;
  private trailers: Fields = [];
  private flow: Flow | undefined;
  private cancel: Cancel | undefined;
  private readonly heads = { up: 0, down: 0 };
  private readonly bodies = { up: 0, down: 0 };

  constructor(leg: Http2Leg, stream: ServerHttp2Stream, { raw, ended }: { raw: Fields; ended: boolean }) {
    this.leg = leg;
    this.stream = stream;
    this.hasBody = !ended;
    this.isHead = findField(raw, ":method") === "HEAD";
    this.heads.up = countBytes(raw);
    // Told of by the close that follows.
    stream.on("error", () => undefined);
    stream.on("trailers", (_trailers: unknown, _flags: number, fields: string[]) => (this.trailers = fields));
    stream.once("close", () => this.finish());
    void this.judge(raw);
  }

  private get isGone(): boolean {
    return this.stream.destroyed || this.stream.closed;
  }

  private async judge(raw: Fields): Promise<void> {
    const { context, passage: { asked: { protocol, client }, admitted: { name, port } }, upstreams } = this.leg;
    const { access } = context;
    const read = readHttp2Head(raw);
    if (!read.ok) {
      access.refuse({ protocol, method: null, port, client }, judgeUnreadable(MALFORMED_HOST, port, read.complaint), []);
      return this.answer(makeAnswer(400, `AgentBox refuses this request: ${read.complaint}`));
    }
    const { head } = read;
    // Nothing where a name plainly agrees, so that the quick way of judging is open.
    const claims = head.names.filter((claim) => claim !== name && claim !== `${name}:${port}`);
    const asked: Asked = { protocol, method: head.method, host: name, port, client, use: { kind: "request", method: head.method, upgrade: false, claims } };
    for (;;) {
      const outcome = await access.admit(asked);
      if (!outcome.ok) return this.answer(describeOutcome(asked, outcome));
      const opened = this.isGone ? undefined : await upstreams.open(outcome);
      if (opened === undefined || this.isGone) return undefined;
      if (!opened.ok) return this.answer(describeFailure(outcome, opened));
      // A policy that came into force meanwhile judges it anew.
      if (access.policy.epoch === outcome.epoch) return this.send(opened, { asked, admitted: outcome, head });
    }
  }

  private send({ send }: Extract<Opened, { ok: true }>, { asked, admitted, head }: Pick<FlowInput, "asked" | "admitted"> & { head: Http2Head }): void {
    const { stream, hasBody } = this;
    this.flow = this.leg.context.flows.begin({ asked, admitted, cut: () => this.cut() });
    if (hasBody) stream.on("data", (bytes: Buffer) => (this.bodies.up += bytes.length));
    try {
      this.cancel = send({
        authority: renderAuthority(admitted.host, admitted.port, "https"),
        head,
        client: stream,
        hasBody,
        trailers: () => this.trailers,
        onInterim: (status, fields) => this.passInterim(status, fields),
        onAnswer: (answer) => this.pass(answer),
        onBroken: (broken) => this.break(broken),
      });
    } catch (error) {
      // Node's own look at the fields: what it does not send is malformed.
      this.answer(makeAnswer(400, `AgentBox refuses this request: ${error instanceof Error ? error.message : "it cannot be sent"}`));
    }
  }

  private passInterim(status: number, fields: Fields): void {
    if (this.isGone || this.stream.headersSent || status === constants.HTTP_STATUS_SWITCHING_PROTOCOLS) return;
    try {
      this.stream.additionalHeaders({ ":status": status, ...joinTrailers(fields) });
    } catch {
      // What cannot be sent is left out: the answer still comes.
    }
  }

  private pass({ status, fields, body, isEmpty, isWhole, trailers }: UpstreamAnswer): void {
    const { stream } = this;
    if (this.isGone || stream.headersSent) return;
    // Clients ask their user for a password then, and send it to whoever asked.
    if (status === constants.HTTP_STATUS_PROXY_AUTHENTICATION_REQUIRED) {
      this.break({ why: "its server asks for a password for a proxy", code: NGHTTP2_INTERNAL_ERROR });
      return;
    }
    this.heads.down = countBytes(fields);
    const endStream = isEmpty || this.isHead || [204, 205, 304].includes(status);
    try {
      stream.respond([":status", String(status), ...fields], { endStream, waitForTrailers: !endStream });
    } catch {
      this.break({ why: "its server sent a response that is malformed", code: NGHTTP2_INTERNAL_ERROR });
      return;
    }
    stream.once("wantTrailers", () => sendTrailers(stream, trailers()));
    const length = findField(fields, "content-length");
    body.on("data", (bytes: Buffer) => (this.bodies.down += bytes.length));
    if (endStream) return void body.resume();
    body.pipe(stream, { end: false });
    body.once("end", () => {
      if (isWhole() && (length === undefined || Number(length) === this.bodies.down)) stream.end();
      else this.break({ why: "its response is not whole", code: NGHTTP2_INTERNAL_ERROR });
    });
  }

  /** There is no whole answer. What has begun is reset, as the client would see it without a proxy. */
  private break({ why, code }: Broken): void {
    if (this.isGone) return;
    this.cancel?.(NGHTTP2_CANCEL);
    if (this.stream.headersSent || (code !== NGHTTP2_NO_ERROR && code !== NGHTTP2_INTERNAL_ERROR)) this.stream.close(code === NGHTTP2_NO_ERROR ? NGHTTP2_INTERNAL_ERROR : code);
    else this.answer(describeFailure(this.leg.passage.admitted, { status: 502, why }));
  }

  /** Answers in the proxy's own name; a body that still comes is not wanted (RFC 9113 section 8.1). */
  private answer({ status, type, error, body }: Answer): void {
    const { stream } = this;
    if (this.isGone || stream.headersSent) return;
    stream.respond([":status", String(status), "content-type", type, "content-length", String(Buffer.byteLength(body)), ...(error === undefined ? [] : ["x-proxy-error", error])]);
    if (this.hasBody) stopUpload(stream);
    if (this.isHead) stream.end();
    else stream.end(body);
  }

  /** A new policy does not let it through any more. */
  private cut(): void {
    this.cancel?.(NGHTTP2_CANCEL);
    if (!this.isGone) this.stream.close(NGHTTP2_CANCEL);
  }

  private finish(): void {
    // After a whole exchange there is nothing left to give up.
    this.cancel?.(this.stream.rstCode);
    const { heads, bodies } = this;
    this.flow?.end({ bytesUp: heads.up + bodies.up, bytesDown: heads.down + bodies.down, bodies });
  }
}
