import type { HttpDenial } from "../../policy/denial.ts";
import { escapeUnseen } from "../../policy/parsed.ts";

/** An answer of the proxy itself. */
export type Answer = Omit<HttpDenial, "error"> & { error?: string | undefined };

const PHRASES: Readonly<Record<number, string>> = { 400: "Bad Request", 403: "Forbidden", 408: "Request Timeout", 431: "Request Header Fields Too Large", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout" };

/** An answer of one sentence. */
export function makeAnswer(status: number, sentence: string): Answer {
  return { status, type: "text/plain; charset=utf-8", body: `${escapeUnseen(sentence)}\n` };
}

/** Renders an answer; one to HEAD has no body, but says how long it would be. */
export function renderAnswer({ status, type, error, body }: Answer, { closes, isHead }: { closes: boolean; isHead: boolean }): string {
  const lines = [
    `HTTP/1.1 ${status} ${PHRASES[status] ?? ""}`,
    `Content-Type: ${type}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(error === undefined ? [] : [`x-proxy-error: ${error}`]),
    ...(closes ? ["Connection: close"] : []),
  ];
  return `${lines.join("\r\n")}\r\n\r\n${isHead ? "" : body}`;
}
