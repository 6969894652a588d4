import { type Host, parseHostPort, renderHost } from "./host-name.ts";
import { quote } from "./parsed.ts";
import type { Reason } from "./reason.ts";

/** Which methods a policy permits: all of them, or only those that read. */
export type Methods = "limited" | "full";

/**
 * What a connection to a host is for, as far as it can be seen. A `request` is one HTTP request whose head is
 * read, `upgrade` where it asks for a channel in both directions. A `tunnel` is bytes that nobody reads
 * further, asked for by CONNECT, by SOCKS or by a TLS hello. `claims` are the other names that the client gave
 * for the same place (Host, SNI, the target of the tunnel around it), as they came.
 */
export type Use = { claims?: readonly string[] | undefined } & ({ kind: "request"; method: string; upgrade?: boolean } | { kind: "tunnel"; via: "connect" | "socks" | "tls"; intercepted: boolean });

type UseReason = Extract<Reason, "method_not_allowed" | "mitm_required" | "host_mismatch">;

/** The methods that only read, exactly as RFC 9110 spells them. */
const READING: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);
const TLS_PORT = 443;

/** Judges what an allowed host is used for: every name that was given has to be this host, and limited methods need a head that can be read. Undefined is no objection. */
export function judgeUse(methods: Methods, { host, port }: { host: Host; port: number | undefined }, use: Use): { reason: UseReason; detail: string } | undefined {
  for (const claim of use.claims ?? []) {
    if (!isClaimTrue(claim, { host, port })) return { reason: "host_mismatch", detail: `the same connection names ${quote(claim)}` };
  }
  if (methods === "full") return undefined;
  // What a channel carries has no methods: reading is only its beginning.
  if (use.kind === "request" && use.upgrade === true) return { reason: "method_not_allowed", detail: "in limited mode a change of protocol is refused" };
  if (use.kind === "request") return READING.has(use.method) ? undefined : { reason: "method_not_allowed", detail: `in limited mode ${quote(use.method)} is refused; GET, HEAD and OPTIONS are not` };
  if (use.intercepted) return undefined;
  if (use.via === "socks" && port !== TLS_PORT) return { reason: "method_not_allowed", detail: "in limited mode SOCKS reaches port 443 only" };
  return { reason: "mitm_required", detail: "in limited mode methods inside TLS have to be seen: set mitm.enabled" };
}

/** A claim may carry the port; another one than that of the connection is another place. */
function isClaimTrue(claim: string, { host, port }: { host: Host; port: number | undefined }): boolean {
  const named = parseHostPort(claim);
  if (!named.ok || (named.value.port !== undefined && named.value.port !== port)) return false;
  return renderHost(named.value.host) === renderHost(host);
}
