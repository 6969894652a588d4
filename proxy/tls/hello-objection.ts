import type { Host } from "../../policy/host-name.ts";
import type { Hello } from "./client-hello.ts";

/** What the log says for a host of a hello without a server name. */
export const NAMELESS = "(no server name)";

/** What speaks against a hello towards a host, whatever the policy says of it; undefined is no objection. */
export function objectToHello({ sni, ech }: Hello, { host, refuseEch }: { host: Host | undefined; refuseEch: boolean }): string | undefined {
  if (ech && refuseEch) return "the TLS hello may hide another name (ECH)";
  // RFC 6066 section 3: a literal address is never a server name, so there it is right that none stands there.
  return sni === undefined && host?.kind !== "address" ? "the TLS hello has no server name" : undefined;
}
