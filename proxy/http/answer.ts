import { type HttpDenial, renderJsonDenial } from "../../policy/denial.ts";
import { parseHost } from "../../policy/host-name.ts";
import { escapeUnseen } from "../../policy/parsed.ts";
import { renderHostPort } from "../../policy/proxy-words.ts";
import type { Admitted, Outcome } from "../access/access.ts";
import type { Asked } from "../access/judgement.ts";

/** An answer of the proxy itself. */
export type Answer = Omit<HttpDenial, "error"> & { error?: string | undefined };

const PHRASES: Readonly<Record<number, string>> = { 400: "Bad Request", 403: "Forbidden", 408: "Request Timeout", 431: "Request Header Fields Too Large", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout" };

/** An answer of one sentence. */
export function makeAnswer(status: number, sentence: string): Answer {
  return { status, type: "text/plain; charset=utf-8", body: `${escapeUnseen(sentence)}\n` };
}

/** Says why there is no response, of a server that may be asked. */
export function describeFailure({ host, port }: Pick<Admitted, "host" | "port">, { status, why }: { status: 502 | 504; why: string }): Answer {
  return makeAnswer(status, `AgentBox let ${renderHostPort({ host, port })} through, but ${why}`);
}

/** Says why a request is not let through, or why it cannot be. */
export function describeOutcome({ host }: Pick<Asked, "host">, outcome: Exclude<Outcome, Admitted>): Answer {
  if (outcome.denial === undefined) return makeAnswer(outcome.status, `AgentBox let ${host} through, but ${outcome.why}`);
  // What is no host was nothing to judge.
  if (!parseHost(host).ok) return makeAnswer(400, `AgentBox refuses this request: ${outcome.denial.detail ?? "its host is none"}`);
  return renderJsonDenial(outcome.denial);
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
