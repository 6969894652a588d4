import { connect, createSecureContext, getCACertificates, type SecureContext, type TLSSocket } from "node:tls";
import { type Host, renderHost } from "../../policy/host-name.ts";
import type { Dialled } from "../access/dial.ts";
import { Connection } from "../net/connection.ts";
import { LIMITS } from "../web-context.ts";
import { holdForTls } from "./client-tls.ts";

/** A verified connection; `protocol` is what the server chose, undefined where it chose nothing. `silent`: the server said nothing at all. */
export type Encrypted = { ok: true; tls: TLSSocket; protocol: string | undefined } | (Extract<Dialled, { ok: false }> & { silent?: boolean });

/** Protocols to offer, the best first. */
export type Protocols = readonly ["http/1.1"] | readonly ["h2", "http/1.1"];

/** Makes what the certificates of servers are checked against: the roots of the system, those of Node, and PEM texts of the site's own. */
export function makeTrust(ca: string | undefined): SecureContext {
  const roots = new Set([...getCACertificates("system"), ...getCACertificates("bundled"), ...(ca === undefined ? [] : [ca])]);
  return createSecureContext({ ca: [...roots], minVersion: "TLSv1.2" });
}

/** Speaks TLS as the client on a connection to a host, which has to prove that it is that host. Nothing but the handshake is sent before. */
export async function encryptUpstream(connection: Connection, { host, protocols, trust }: { host: Host; protocols: Protocols; trust: SecureContext }): Promise<Encrypted> {
  const name = renderHost(host);
  holdForTls(connection);
  const { promise, resolve } = Promise.withResolvers<Encrypted>();
  // Said here although it is the default: NODE_TLS_REJECT_UNAUTHORIZED would change that.
  const tls = connect({ socket: connection.socket, secureContext: trust, rejectUnauthorized: true, host: name, ...(host.kind === "name" ? { servername: name } : {}), ALPNProtocols: [...protocols] });
  const timer = setTimeout(() => {
    resolve({ ok: false, status: 504, why: "its server does not finish the TLS handshake" });
    tls.destroy();
  }, LIMITS.headMs);
  const { socket } = connection;
  const readBefore = socket.bytesRead;
  const fail = (why: string): void => resolve({ ok: false, status: 502, why, silent: socket.bytesRead === readBefore });
  tls.once("error", (error) => fail(describeFailure(error)));
  tls.once("close", () => fail("its server ends the connection during the TLS handshake"));
  tls.once("secureConnect", () => resolve({ ok: true, tls, protocol: tls.alpnProtocol === false || tls.alpnProtocol === null ? undefined : tls.alpnProtocol }));
  const encrypted = await promise;
  clearTimeout(timer);
  return encrypted;
}

/** What the errors of OpenSSL and Node mean; their own texts repeat what the server says of itself. */
const CERTIFICATE_FLAWS: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "has run out",
  CERT_NOT_YET_VALID: "is not valid yet",
  ERR_TLS_CERT_ALTNAME_INVALID: "is for other names",
  DEPTH_ZERO_SELF_SIGNED_CERT: "is vouched for by nobody but itself",
  SELF_SIGNED_CERT_IN_CHAIN: "is vouched for by an authority that is not trusted",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "is vouched for by nobody who is known",
  UNABLE_TO_GET_ISSUER_CERT: "is vouched for by nobody who is known",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "is vouched for by nobody who is known",
  CERT_REVOKED: "was revoked",
  INVALID_PURPOSE: "is not one for servers",
};

function describeFailure(error: Error): string {
  const code = "code" in error ? String(error.code) : "no code";
  const flaw = CERTIFICATE_FLAWS[code];
  return flaw === undefined ? `the TLS handshake with its server fails (${code})` : `the certificate of its server ${flaw} (${code})`;
}

/** A verified connection as one that is read and written. */
export function dialledOf(encrypted: Encrypted): Dialled {
  return encrypted.ok ? { ok: true, connection: new Connection({ socket: encrypted.tls }) } : encrypted;
}
