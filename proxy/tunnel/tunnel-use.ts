import { parseHost } from "../../policy/host-name.ts";
import { isOpaque } from "../../policy/open-ports.ts";
import type { Use } from "../../policy/use.ts";
import type { Access } from "../access/access.ts";

/** How a tunnel was asked for. */
export type Via = Extract<Use, { kind: "tunnel" }>["via"];

/** Says what a tunnel is for. Where the owner says that no TLS is spoken, nothing can be intercepted. */
export function describeTunnel(access: Access, { via, host, port }: { via: Via; host: string; port: number }): Use {
  return { kind: "tunnel", via, intercepted: access.intercepts(host) && !speaksOther(access, host, port) };
}

function speaksOther({ policy }: Access, text: string, port: number): boolean {
  const host = parseHost(text);
  return host.ok && isOpaque(policy.policy, host.value, port);
}
