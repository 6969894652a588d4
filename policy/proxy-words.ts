import { parseHost, parsePort, renderHost, type Host } from "./host-name.ts";
import { parsed, quote, refused, trimBlanks, type Parsed } from "./parsed.ts";

/** Where a listener shall listen. */
export type Listener = { host: Host; port: number };

/** A proxy that everything leaves through. The password is never part of a message. */
export type Upstream = { host: Host; port: number; tls: boolean; user: string; password: string };

const LISTENER_FORM = "http://127.0.0.1:PORT";
// A URL parser drops the port that is the scheme's own, so the port is read by hand.
const LISTENER = /^(?:(?:http|socks5h?):\/\/)?(?<host>\[[^\]]*\]|[^:/[\]@]+):(?<port>[0-9]+)\/?$/i;
const UPSTREAM = /^(?<scheme>https?):\/\/(?:(?<user>[^:@/]*)(?::(?<password>[^@/]*))?@)?(?<host>\[[^\]]*\]|[^:/[\]@]+):(?<port>[0-9]+)\/?$/i;

/** Parses the address of a listener; a port has to be named, 80 as well. */
export function parseListener(text: string): Parsed<Listener> {
  const found = LISTENER.exec(trimBlanks(text))?.groups;
  if (found === undefined) return refused(`${quote(text)} is not the address of a listener`, LISTENER_FORM);
  const host = parseHost(found["host"] ?? "");
  if (!host.ok) return host;
  if (host.value.kind === "name" && host.value.name !== "localhost") return refused(`${quote(text)} names a host`, "an address of this machine, or localhost", `write ${LISTENER_FORM}`);
  const port = parsePort(found["port"] ?? "");
  return port.ok ? parsed({ host: host.value, port: port.value }) : port;
}

/** Where the admin API shall listen: as a listener, or a socket in the file system. */
export type AdminListener = Listener | { path: string };

/** Parses the address of the admin API. */
export function parseAdminListener(text: string): Parsed<AdminListener> {
  const path = /^unix:(?:\/\/)?(?<path>.*)$/i.exec(trimBlanks(text))?.groups?.["path"];
  if (path === undefined) return parseListener(text);
  const socket = parseUnixSocket(path);
  return socket.ok && socket.value.kind === "path" ? parsed({ path }) : refused(`${quote(text)} is not a socket`, "unix:/PATH/OF/SOCKET");
}

/** Parses the site's proxy. What is wrong is not repeated, since it may carry a password. */
export function parseUpstream(text: string): Parsed<Upstream> {
  const found = UPSTREAM.exec(trimBlanks(text))?.groups;
  if (found === undefined) return refused("this is not the address of a proxy", "http://HOST:PORT or http://USER:PASSWORD@HOST:PORT", "write the port as well, 80 or 443 too");
  const host = parseHost(found["host"] ?? "");
  if (!host.ok) return refused("the host of the proxy is not right", "a name or an address");
  const port = parsePort(found["port"] ?? "");
  if (!port.ok) return refused("the port of the proxy is not right", "a number from 1 to 65535");
  const [user, password] = [decode(found["user"]), decode(found["password"])];
  if (user === undefined || password === undefined) return refused("the user or password of the proxy is not right", "percent signs only as %XX");
  return parsed({ host: host.value, port: port.value, tls: found["scheme"]?.toLowerCase() === "https", user, password });
}

/** A socket to let through: a path, or where the ssh agent listens. */
export type UnixSocket = { kind: "path"; path: string } | { kind: "ssh-agent" };

/** Parses an element of allow_unix_sockets. */
export function parseUnixSocket(text: string): Parsed<UnixSocket> {
  const word = trimBlanks(text);
  if (word === "$SSH_AUTH_SOCK" || word === "ssh-agent") return parsed({ kind: "ssh-agent" });
  const steps = word.split("/");
  // Bytes of sun_path (unix(7)), less the NUL at its end.
  const isPath = word.startsWith("/") && !/\p{Cc}/u.test(word) && Buffer.byteLength(word) <= 107 && !steps.includes("..") && !steps.includes(".");
  return isPath && word !== "/" ? parsed({ kind: "path", path: word }) : refused(`${quote(text)} is not a socket`, "an absolute path, $SSH_AUTH_SOCK or ssh-agent");
}

/** `host:port` as it stands in a URL. */
export function renderHostPort({ host, port }: { host: Host; port: number }): string {
  const text = renderHost(host);
  return `${text.includes(":") ? `[${text}]` : text}:${port}`;
}

function decode(text = ""): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
