import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http2";
import { text } from "node:stream/consumers";

export type Answer = { status: number | undefined; headers: IncomingHttpHeaders };
/** A whole answer; `raw` are its fields as they came, names and values in turn. */
export type Told = Answer & { raw: readonly string[]; body: string; trailers: IncomingHttpHeaders };

/** Waits for the head of an answer. Rejects where the stream ends without one. */
export async function awaitAnswer(stream: ClientHttp2Stream): Promise<Answer & { raw: readonly string[] }> {
  return await new Promise((resolve, reject) => {
    stream.once("response", (headers, _flags, raw) => resolve({ status: headers[":status"], headers, raw }));
    stream.once("error", reject);
    stream.once("close", () => reject(new Error(`closed with code ${stream.rstCode}`)));
  });
}

/** Asks and waits for all of the answer. */
export async function ask(session: ClientHttp2Session, headers: OutgoingHttpHeaders | readonly string[], body?: string | Buffer): Promise<Told> {
  const stream = session.request(headers, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  let trailers: IncomingHttpHeaders = {};
  stream.once("trailers", (fields) => (trailers = fields));
  const answer = await awaitAnswer(stream);
  return { ...answer, body: await text(stream), trailers };
}

/** Waits for the end of a stream and gives its code. */
export async function awaitClose(stream: ClientHttp2Stream): Promise<number> {
  stream.on("error", () => undefined);
  if (!stream.destroyed) await new Promise<void>((resolve) => void stream.once("close", resolve));
  return stream.rstCode;
}
