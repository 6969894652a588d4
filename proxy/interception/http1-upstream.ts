import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import { constants } from "node:http2";
import { Duplex } from "node:stream";
import { NOT_IN_TRAILERS, readList } from "../http/field-name.ts";
import { LIMITS } from "../web-context.ts";
import { dropHopFields, type Fields, findField } from "./http2-head.ts";
import type { Encrypted } from "./upstream-tls.ts";
import { type Cancel, pipeBody, type UpstreamAsk } from "./upstream-ask.ts";

/** Methods whose requests have no body unless they say so (RFC 9110 section 8.6). */
const BODILESS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "DELETE", "TRACE"]);
/** Methods that may be sent twice (RFC 9110 section 9.2.2). */
const IDEMPOTENT: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);
/** Idle connections that are kept. All of them may have died meanwhile, so a request tries one more than that. */
const MAX_IDLE = 4;
const TE: ReadonlySet<string> = new Set(["te", "cookie", "host"]);
/** Node wants something in the place of a connection that could not be made. */
const NO_CONNECTION = new Duplex();

/** Why no connection could be opened. */
class NotOpened extends Error {}

/** Connections of one client to a server that speaks HTTP/1.1; `open` gives verified ones. */
export function makeAgent(open: () => Promise<Encrypted>): Agent {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: MAX_IDLE, scheduling: "lifo" });
  agent.createConnection = (_options, onCreated) => {
    void open().then((opened) => {
      if (!opened.ok) return onCreated?.(new NotOpened(opened.why), NO_CONNECTION);
      // One that its server ended is not kept.
      opened.tls.allowHalfOpen = false;
      return onCreated?.(null, opened.tls);
    });
    return undefined;
  };
  return agent;
}

/** Sends a request of HTTP/2 by HTTP/1.1. */
export function askHttp1(agent: Agent, ask: UpstreamAsk, tries = MAX_IDLE): Cancel {
  const { head, hasBody } = ask;
  const sent = request({ agent, method: head.method, path: head.path, headers: renderFields(ask), maxHeaderSize: LIMITS.headBytes, setHost: false });
  let cancel: Cancel = () => void sent.destroy();
  let answered = false;
  sent.on("information", ({ statusCode, rawHeaders }) => ask.onInterim(statusCode, dropHopFields(rawHeaders)));
  sent.once("response", (response) => {
    answered = true;
    receive(response, ask);
  });
  sent.once("error", (error) => {
    // It was closed before it saw the request (RFC 9112 section 9.3.1): another connection is as good.
    const isStale = sent.reusedSocket && !hasBody && !answered && tries > 0 && IDEMPOTENT.has(head.method);
    if (isStale) cancel = askHttp1(agent, ask, tries - 1);
    else if (!answered) ask.onBroken({ why: error instanceof NotOpened ? error.message : "its server ended the connection before its response was whole", code: constants.NGHTTP2_INTERNAL_ERROR });
  });
  if (hasBody) pipeBody(ask, sent, () => addTrailers(sent, ask.trailers()));
  else sent.end();
  return (code) => cancel(code);
}

function receive(response: IncomingMessage, { onAnswer, onBroken }: UpstreamAsk): void {
  response.on("error", () => undefined);
  response.once("close", () => {
    if (!response.complete) onBroken({ why: "its server ended the connection before its response was whole", code: constants.NGHTTP2_INTERNAL_ERROR });
  });
  const named = new Set(readList((findField(response.rawHeaders, "connection") ?? "").toLowerCase()));
  onAnswer({ status: response.statusCode ?? 0, fields: dropHopFields(response.rawHeaders, named), body: response, isEmpty: false, isWhole: () => response.complete, trailers: () => response.rawTrailers });
}

function renderFields({ authority, head, hasBody }: UpstreamAsk): string[] {
  const cookies = head.fields.filter((_, index) => index % 2 === 1 && head.fields[index - 1] === "cookie");
  const fields = ["host", authority, ...dropHopFields(head.fields, TE)];
  // RFC 9113 section 8.2.3: HTTP/2 may send each of them on its own.
  if (cookies.length > 0) fields.push("cookie", cookies.join("; "));
  if (findField(head.fields, "content-length") !== undefined) return fields;
  // In HTTP/2 frames tell where a body ends.
  if (hasBody) fields.push("transfer-encoding", "chunked");
  else if (!BODILESS.has(head.method)) fields.push("content-length", "0");
  return fields;
}

/** Those that cannot be sent break the request off: its reader must not take it for whole. */
function addTrailers(sent: ClientRequest, fields: Fields): void {
  try {
    sent.addTrailers(pairs(dropHopFields(fields, NOT_IN_TRAILERS)));
  } catch {
    sent.destroy();
  }
}

function pairs(fields: Fields): [string, string][] {
  return fields.flatMap((name, index): [string, string][] => (index % 2 === 0 ? [[name, fields[index + 1] ?? ""]] : []));
}
