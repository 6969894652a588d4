import { type SecureContext, TLSSocket } from "node:tls";
import type { Connection, Reader } from "../net/connection.ts";
import { LIMITS } from "../web-context.ts";

/** Reads nothing: whatever comes waits for the TLS below which the connection lies. */
const NOBODY: Reader = { onBytes: () => false, onEnd: () => undefined, onClose: () => undefined };

/** What clients say who do not accept a certificate (RFC 8446 section 6.2). */
const REFUSAL = /alert (?<alert>unknown ca|bad certificate|certificate unknown|unsupported certificate|certificate expired|certificate revoked|access denied)/i;

/** Stops the reading of a connection until TLS takes it over. */
export function holdForTls(connection: Connection): void {
  connection.handTo(NOBODY);
  connection.socket.pause();
}

export type AcceptTls = { first: Buffer; secureContext: SecureContext; /** Is told what a client says who does not accept the certificate. */ onRefused: (alert: string) => void };

/**
 * Speaks TLS as the server on a held connection whose first bytes were read; undefined where no handshake comes
 * about. The socket's own handle is wrapped, so that bytes are decrypted without a detour through streams.
 */
export async function acceptTls(client: Connection, { first, secureContext, onRefused }: AcceptTls): Promise<TLSSocket | undefined> {
  if (client.isClosed) return undefined;
  client.socket.unshift(first);
  const tls = new TLSSocket(client.socket, { isServer: true, secureContext, ALPNProtocols: ["h2", "http/1.1"] });
  // Node tells of TLS errors by this event as long as no server of its own owns the socket; nobody else ends it then.
  tls.on("_tlsError", (error: Error) => {
    const alert = REFUSAL.exec(error.message)?.groups?.["alert"];
    if (alert !== undefined) onRefused(alert);
    tls.destroy();
  });
  const { promise, resolve } = Promise.withResolvers<TLSSocket | undefined>();
  // Counted in all and not from byte to byte: a client cannot draw a handshake out.
  const timer = setTimeout(() => tls.destroy(), LIMITS.headMs);
  tls.once("secure", () => resolve(tls));
  tls.once("close", () => resolve(undefined));
  const accepted = await promise;
  clearTimeout(timer);
  // Node's own server says so too when the handshake is done; HTTP/2 waits for it.
  if (accepted !== undefined) Reflect.set(accepted, "secureConnecting", false);
  return accepted;
}
