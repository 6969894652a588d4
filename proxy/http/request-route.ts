import { parseHost, parseHostPort } from "../../policy/host-name.ts";
import { quote } from "../../policy/parsed.ts";
import type { Asked } from "../access/judgement.ts";
import type { HttpInside } from "../web-context.ts";
import type { Authority } from "./authority.ts";
import { isSame } from "./field-bytes.ts";
import { readMethod, type RequestHead } from "./request-head.ts";

/** Who asks, and where: of the proxy itself, or inside something that has a place already. */
export type Place = { inside: HttpInside | undefined; client: Asked["client"] };

/** What a request wants, read from its head alone: a place to judge, a tunnel, a socket of this machine; or why it is malformed. */
export type Route = { kind: "request"; asked: Asked } | { kind: "tunnel"; asked: Asked; target: string } | { kind: "socket"; target: string } | { kind: "malformed"; complaint: string };

const DEFAULT_PORT = 80;
const NONE: readonly string[] = [];
const TUNNEL_ONLY = "https:// is asked for by CONNECT: set this proxy as the one for https as well";

/** Reads what a request wants. Every name that it gives for the place is a claim, unless it is plainly the same. */
export function readRoute(head: RequestHead, bytes: Buffer, from: number, { inside, client }: Place): Route {
  const method = readMethod(head, bytes, from);
  return inside === undefined ? readExplicit(head, bytes, from, { method, client }) : readInside(head, bytes, from, { method, inside });
}

function readExplicit(head: RequestHead, bytes: Buffer, from: number, { method, client }: { method: string; client: Asked["client"] }): Route {
  const { form, authority } = head;
  if (form === "socket" || head.namesSocket) return { kind: "socket", target: bytes.toString("latin1", from + head.targetStart, from + head.targetEnd) };
  if (form === "origin" || form === "asterisk") return malformed("this is a proxy: a request to it names the whole URI, http://host/path, or is CONNECT host:port");
  if (form === "absolute" && head.scheme === "https") return malformed(TUNNEL_ONLY);
  const host = bytes.toString("latin1", from + authority.start, from + authority.hostEnd);
  const port = authority.port === 0 ? DEFAULT_PORT : authority.port;
  const agrees = !head.hasHost || isSame(bytes, [from + authority.start, from + authority.end], [from + head.host.start, from + head.host.end]);
  const claims = agrees ? NONE : claimOf(head.host, bytes, from, { host, port });
  if (form === "authority") {
    const target = bytes.toString("latin1", from + head.targetStart, from + head.targetEnd);
    return checkClaims({ kind: "tunnel", target, asked: { protocol: "https-connect", method, host, port, client, use: { kind: "tunnel", via: "connect", intercepted: false, claims } } });
  }
  return checkClaims({ kind: "request", asked: makeAsked(head, { protocol: "http", method, host, port, client, claims }) });
}

function readInside(head: RequestHead, bytes: Buffer, from: number, { method, inside }: { method: string; inside: HttpInside }): Route {
  const { form, authority } = head;
  const { protocol, port, client, scheme } = inside;
  if (form === "authority" || form === "socket") return malformed(`${method} is for a proxy, and this is none`);
  if (!head.hasHost) return malformed("it has no Host");
  if (form === "absolute" && head.scheme !== scheme) return malformed(`its target begins with ${head.scheme}:// and came by ${scheme}`);
  const named = form === "absolute" ? authority : head.host;
  const host = inside.host ?? bytes.toString("latin1", from + named.start, from + named.hostEnd);
  const hostClaims = claimOf(head.host, bytes, from, { host, port });
  const claims = form === "absolute" ? [...claimOf(authority, bytes, from, { host, port }), ...hostClaims] : hostClaims;
  return checkClaims({ kind: "request", asked: makeAsked(head, { protocol, method, host, port, client, claims }) });
}

function makeAsked(head: RequestHead, { protocol, method, host, port, client, claims }: Omit<Asked, "use"> & { method: string; claims: readonly string[] }): Asked {
  // One shape for all, whatever is in it.
  return { protocol, method, host, port, client, use: { kind: "request", method, upgrade: head.isUpgrade, claims } };
}

/** Nothing where a name plainly agrees, so that the quick way of judging is open. */
function claimOf(named: Authority, bytes: Buffer, from: number, { host, port }: { host: string; port: number }): readonly string[] {
  const text = bytes.toString("latin1", from + named.start, from + named.hostEnd);
  const agrees = text === host && (named.port === 0 || named.port === port);
  return agrees ? NONE : [bytes.toString("latin1", from + named.start, from + named.end)];
}

/** A name that is no host cannot be another host either: that is not for the policy to judge. */
function checkClaims(route: Extract<Route, { asked: Asked }>): Route {
  const { host, use } = route.asked;
  if (use.claims === undefined || use.claims.length === 0) return route;
  const wrong = use.claims.find((claim) => !parseHostPort(claim).ok);
  if (wrong !== undefined) return malformed(`its Host ${quote(wrong)} is no host`);
  return parseHost(host).ok ? route : malformed(`its host ${quote(host)} is no host`);
}

function malformed(complaint: string): Route {
  return { kind: "malformed", complaint };
}
