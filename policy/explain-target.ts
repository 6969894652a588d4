import { parseAddress } from "./address.ts";
import { parseHostPort } from "./host-name.ts";
import { quote, trimBlanks } from "./parsed.ts";

/** What a user asks about: the host as it is to be judged, its port where one is known, and how it was read. */
export type ExplainTarget = { host: string; port: number | undefined; notes: readonly string[] };

const SCHEME_PORTS: Readonly<Record<string, number>> = { http: 80, https: 443, ws: 80, wss: 443, ssh: 22, git: 9418, ftp: 21 };

/**
 * Reads a host, an address, `host:port`, a pasted URL or git's `user@host:path`. What is none of them is
 * handed on as it is, so that the policy itself says what is wrong with it.
 */
export function parseExplainTarget(text: string): ExplainTarget {
  const word = trimBlanks(text);
  const url = /^(?<scheme>[a-z][a-z0-9+.-]*):\/\/(?<rest>.*)$/is.exec(word)?.groups;
  if (url?.["rest"] !== undefined) {
    const scheme = url["scheme"]?.toLowerCase().replace(/^git\+/, "") ?? "";
    const target = splitPort(cutUrl(url["rest"]));
    const port = target.port ?? SCHEME_PORTS[scheme];
    return { host: target.host, port, notes: [readAs(word, target.host, port)] };
  }
  const remote = /^[^\s/@:]+@(?<host>[^\s/:@]+):(?!\d+$)/.exec(word)?.groups?.["host"];
  if (remote !== undefined) return { host: remote, port: 22, notes: [readAs(word, remote, 22)] };
  const cut = cutUrl(word);
  const target = splitPort(cut);
  return { ...target, notes: cut === word ? [] : [readAs(word, target.host, target.port)] };
}

/** Leaves host and port of what follows a scheme: no user, path, query or fragment. */
function cutUrl(rest: string): string {
  const authority = rest.replace(/[/?#\\].*$/s, "");
  return authority.slice(authority.lastIndexOf("@") + 1);
}

function splitPort(text: string): { host: string; port: number | undefined } {
  // A bare IPv6 address ends in something that looks like a port.
  if (parseAddress(text).ok) return { host: text, port: undefined };
  const target = parseHostPort(text);
  const colon = text.lastIndexOf(":");
  return target.ok && target.value.port !== undefined ? { host: text.slice(0, colon), port: target.value.port } : { host: text, port: undefined };
}

function readAs(word: string, host: string, port: number | undefined): string {
  return `${quote(word)} is read as ${host}${port === undefined ? "" : ` on port ${port}`}: paths are not judged`;
}
