import { constants, type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { Readable, Writable } from "node:stream";
import { NOT_IN_TRAILERS } from "../http/field-name.ts";
import { dropHopFields, type Fields, type Http2Head } from "./http2-head.ts";

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
    if (client.aborted || client.rstCode !== constants.NGHTTP2_NO_ERROR) return;
    beforeEnd();
    sink.end();
  });
}

/** Trailers as Node wants them for HTTP/2, without fields that a reader would take for a part of the head. */
export function joinTrailers(fields: Fields): OutgoingHttpHeaders {
  const kept = dropHopFields(fields, NOT_IN_TRAILERS);
  const joined: Record<string, string[]> = {};
  for (let at = 0; at + 1 < kept.length; at += 2) (joined[kept[at] ?? ""] ??= []).push(kept[at + 1] ?? "");
  return joined;
}
