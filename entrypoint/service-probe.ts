import type { LookupFunction, Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { CriticalService } from "../policy/critical-service.ts";

const LIMIT_MS = 10_000;
const MAX_ANSWER = 64 * 1024;

export type ServiceProbe = {
  service: CriticalService;
  /** Where its name leads. */
  addresses: readonly string[];
  /** Certificates to trust. */
  ca: Buffer;
  /** TLS ends at the box's own proxy, so that only an answer to a request proves that the service is there. */
  intercepted: boolean;
};

/** Reaches a service by TCP and TLS with a verified certificate; whatever HTTP would answer does not matter. Throws Error saying why it does not answer. */
export function reachService({ service: { name, port }, addresses, ca, intercepted }: ServiceProbe): Promise<void> {
  const lookup: LookupFunction = (_host, _options, callback) =>
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    );
  return new Promise((resolve, reject) => {
    const socket = connectTls({ host: name, port, servername: name, lookup, ca });
    const finish = (): void => {
      socket.destroy();
      resolve();
    };
    socket.setTimeout(LIMIT_MS, () => socket.destroy(new Error(`no answer within ${LIMIT_MS / 1000} s`)));
    socket.once("error", (error) => reject(new Error(`${name}:${port} does not answer: ${explain(error)}`, { cause: error })));
    socket.once("secureConnect", () => (intercepted ? awaitAnswer(socket, name, finish) : finish()));
  });
}

/** The proxy's own words for a place that it let through and could not reach (proxy/http, proxy/interception). */
const UNREACHED = /^AgentBox let \S+ through, but (.*)$/;

function awaitAnswer(socket: Socket, name: string, onAnswer: () => void): void {
  let text = "";
  const judge = (whole: boolean): void => {
    const end = text.indexOf("\r\n\r\n");
    const status = /^HTTP\/1\.[01] ([0-9]{3})/.exec(text)?.[1];
    if (status !== undefined && end >= 0 && !["502", "504"].includes(status)) return onAnswer();
    if (!whole && text.length < MAX_ANSWER) return;
    if (status === undefined || end < 0) return void socket.destroy(new Error("what it answers is no HTTP"));
    const why = UNREACHED.exec(text.slice(end + 4).trimEnd())?.[1];
    if (why === undefined) onAnswer();
    else socket.destroy(new Error(why));
  };
  socket.on("data", (bytes: Buffer) => {
    text += bytes.toString("latin1");
    judge(false);
  });
  socket.once("end", () => judge(true));
  socket.write(`GET / HTTP/1.1\r\nHost: ${name}\r\nUser-Agent: agentbox\r\nConnection: close\r\n\r\n`);
}

const UNTRUSTED = new Set([
  "SELF_SIGNED_CERT_IN_CHAIN",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

function explain(error: Error): string {
  const code = "code" in error ? String(error.code) : "";
  if (UNTRUSTED.has(code)) return `its certificate is not trusted (${code}); behind an inspecting gateway give its CA with --ca-file`;
  if (code === "ERR_SSL_TLSV1_ALERT_ACCESS_DENIED") return 'the box\'s own proxy refuses it (mode = "limited" reaches TLS with mitm.enabled only)';
  if (error instanceof AggregateError) return error.errors.map((each: unknown) => (each instanceof Error ? each.message : String(each))).join(", ");
  return error.message;
}
