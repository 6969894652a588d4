import { constants, type Http2Stream, type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { Readable, Writable } from "node:stream";
import { NOT_IN_TRAILERS } from "../http/field-name.ts";
import { dropHopFields, type Fields, type Http2Head } from "./http2-head.ts";

/** What a client may take to read an answer that came ahead of the end of its request. */
const ANSWER_READ_MS = 1000;

/** A final response. `body` is to be read to its end, after which it is known whether that `isWhole`, and the `trailers`. */
export type UpstreamAnswer = { status: number; fields: Fields; body: Readable; isEmpty: boolean; isWhole: () => boolean; trailers: () => Fields };

/** No response, or no whole one: why, or the error code of HTTP/2 that the server said. */
export type Broken = { why: string; code: number };

/** One request that was let through, and who waits for its answer. */
export type UpstreamAsk = {
  /** What the server calls itself. */
  authority: string;
  head: Http2Head;
  /** Its body is read from here, unless it has none. */
  client: ServerHttp2Stream;
  hasBody: boolean;
  /** Known once the body was read to its end. */
  trailers: () => Fields;
  onInterim: (status: number, fields: Fields) => void;
  onAnswer: (answer: UpstreamAnswer) => void;
  onBroken: (broken: Broken) => void;
};

/** Gives the request up, with an error code of HTTP/2. */
export type Cancel = (code: number) => void;

/** Sends the body of a request. One that breaks off is not ended: to the server it would be whole. */
export function pipeBody({ client }: UpstreamAsk, sink: Writable, beforeEnd: () => void = () => undefined): void {
  client.pipe(sink, { end: false });
  client.once("end", () => {
    if (client.aborted || client.rstCode !== constants.NGHTTP2_NO_ERROR || sink.destroyed) return;
    beforeEnd();
    sink.end();
  });
  sink.once("close", () => {
    client.unpipe(sink);
    if (!client.readableEnded) stopUpload(client);
  });
}

/**
 * Tells a client that has its answer that nobody wants the rest of what it sends (RFC 9113 section 8.1). Some
 * forget an answer when they hear that, so they are given a moment to read it; nothing more is read meanwhile.
 */
export function stopUpload(client: ServerHttp2Stream): void {
  if (!client.writableFinished) return void client.once("finish", () => stopUpload(client));
  const timer = setTimeout(() => client.close(constants.NGHTTP2_NO_ERROR), ANSWER_READ_MS);
  client.once("close", () => clearTimeout(timer));
}

/** Sends trailers, which may not be ones that can be sent, on a stream that may be gone. */
export function sendTrailers(stream: Http2Stream, fields: Fields): void {
  try {
    stream.sendTrailers(joinTrailers(fields));
  } catch {
    // Their reader must not take the message for whole.
    if (!stream.destroyed) stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  }
}

/** Trailers as Node wants them for HTTP/2, without fields that a reader would take for a part of the head. */
export function joinTrailers(fields: Fields): OutgoingHttpHeaders {
  const kept = dropHopFields(fields, NOT_IN_TRAILERS);
  // Not an object: the field may be called `constructor` or `__proto__`.
  const joined = new Map<string, string[]>();
  for (let at = 0; at + 1 < kept.length; at += 2) {
    const name = kept[at] ?? "";
    joined.set(name, [...(joined.get(name) ?? []), kept[at + 1] ?? ""]);
  }
  return Object.fromEntries(joined);
}
