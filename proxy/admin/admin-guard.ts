import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { parseHostPort } from "../../policy/host-name.ts";
import { isLoopback } from "../../policy/loopback.ts";
import type { ProxySettings } from "../../policy/proxy-config.ts";

/** Why a request is not answered. */
export type Refused = { status: number; error: string; headers?: Readonly<Record<string, string>> };

export type Guard = { where: ProxySettings["admin"]; token: string };

/**
 * Judges who asks. A page in a browser may send requests to loopback under any name that its owner lets lead
 * there, so the name is judged first, then that no page asks, then the token. Undefined is no objection.
 */
export function judgeRequest({ headers, rawHeaders }: Pick<IncomingMessage, "headers" | "rawHeaders">, { where, token }: Guard): Refused | undefined {
  const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === "host").length;
  if (hosts !== 1 || !isOwnName(headers.host, where)) return { status: 403, error: "the Host of the request is not that of the admin API" };
  if (headers.origin !== undefined) return { status: 403, error: "the admin API answers no web page" };
  const given = /^Bearer (?<token>[\x21-\x7e]+)$/i.exec(headers.authorization ?? "")?.groups?.["token"];
  if (given === undefined || !isSameToken(given, token)) {
    return { status: 401, error: "the token is missing or wrong: send `Authorization: Bearer TOKEN` with that of the token file", headers: { "WWW-Authenticate": 'Bearer realm="agentbox proxy"' } };
  }
  return undefined;
}

/** No page reaches a socket in the file system; of a port it must be the number, and a name that leads nowhere else. */
function isOwnName(host: string | undefined, where: Guard["where"]): boolean {
  if ("path" in where) return true;
  const named = parseHostPort(host ?? "");
  if (!named.ok || (named.value.port ?? 80) !== where.port) return false;
  const { host: name } = named.value;
  if (name.kind === "name") return name.name === "localhost";
  // An address in the place of the name is no trick: whoever wrote it reached just this address.
  return isLoopback(name) || name.address.text === where.address || !isLoopbackText(where.address);
}

function isLoopbackText(address: string): boolean {
  const parsed = parseHostPort(address.includes(":") ? `[${address}]` : address);
  return parsed.ok && isLoopback(parsed.value.host);
}

/** Compares digests, whose length says nothing of the token's and which take the same time wherever they differ. */
function isSameToken(given: string, token: string): boolean {
  return timingSafeEqual(digest(given), digest(token));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
