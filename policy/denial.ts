import type { AllowAnswer } from "./allow-command.ts";
import type { Reason } from "./decide.ts";

/** What a client is told of a refusal: the same words in every protocol. */
export type Denial = { host: string; port: number | undefined; reason: Exclude<Reason, "allowed">; rule: string | undefined; detail: string | undefined; answer: AllowAnswer };

/** HTTP status and the value of `x-proxy-error`; never 407, which clients take for a question about a password. */
const ANSWERS: Readonly<Record<Denial["reason"], { status: number; error: string | undefined }>> = {
  not_allowed: { status: 403, error: "blocked-by-allowlist" },
  not_allowed_local: { status: 403, error: "blocked-by-allowlist" },
  denied: { status: 403, error: "blocked-by-denylist" },
  method_not_allowed: { status: 403, error: "blocked-by-method-policy" },
  mitm_required: { status: 403, error: "blocked-by-mitm-required" },
  host_mismatch: { status: 403, error: "blocked-by-policy" },
  unix_socket_unsupported: { status: 403, error: "blocked-by-policy" },
  proxy_disabled: { status: 503, error: undefined },
};

/** Status, `x-proxy-error` and body of a refusal in HTTP. */
export type HttpDenial = { status: number; error: string | undefined; type: string; body: string };

/** Renders a refusal as JSON, for plain requests. */
export function renderJsonDenial(denial: Denial): HttpDenial {
  const { host, port, reason, rule, answer } = denial;
  const body = { status: "blocked", host, port: port ?? null, reason, rule: rule ?? null, hint: "command" in answer ? answer.command : answer.advice };
  return { ...ANSWERS[reason], type: "application/json", body: `${JSON.stringify(body)}\n` };
}

/** Renders a refusal as one line of text, for CONNECT: few clients show more than a line of it. */
export function renderTextDenial(denial: Denial): HttpDenial {
  return { ...ANSWERS[denial.reason], type: "text/plain; charset=utf-8", body: `${renderSentence(denial)}\n` };
}

/** One sentence with everything that there is to say, for texts and logs. */
export function renderSentence({ host, port, reason, rule, detail, answer }: Denial): string {
  const place = port === undefined ? host : host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  const because = [detail, rule === undefined ? undefined : `rule ${rule}`].filter((part) => part !== undefined).join("; ");
  const remedy = "command" in answer ? `to allow it, a human runs on the host: ${answer.command}` : `to allow it: ${answer.advice}`;
  return `AgentBox blocked ${place}: ${reason}${because === "" ? "" : ` (${because})`}; ${remedy}`;
}
