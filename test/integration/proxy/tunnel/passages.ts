import { serveHttp, serveInside } from "../../../../proxy/http/http-listener.ts";
import { serveSocks } from "../../../../proxy/socks/socks5.ts";
import { serveTls } from "../../../../proxy/tls/tls-listener.ts";
import { openTunnel } from "../../../../proxy/tunnel/tunnel.ts";
import { type Rig, type RigOptions, startRig } from "../web-rig.ts";
import { RawClient } from "./raw-client.ts";

/** How a client asks for a passage: by CONNECT, by SOCKS, or by nothing but its TLS hello. */
export type Way = "connect" | "socks" | "tls";

/** A rig with the proxy's own protocols; `port` is that of the servers which redirected TLS is for. */
export async function startPassages(way: Way, { port, ...options }: Omit<RigOptions, "parts" | "serve"> & { port: number; parts?: RigOptions["parts"] }): Promise<Rig> {
  return await startRig({
    ...options,
    parts: (context) => ({ openTunnel: openTunnel(context), serveInside: serveInside(context), ...(typeof options.parts === "function" ? options.parts(context) : options.parts) }),
    serve: (connection, context) => {
      if (way === "connect") serveHttp(connection, context);
      else if (way === "socks") serveSocks(connection, context);
      else serveTls(connection, { port }, context);
    },
  });
}

/** An answer of the proxy before anything else: the status of HTTP, or the reply of SOCKS; `granted` where there is none to come. */
export type Answer = { granted: boolean; code: number | undefined; text: string };

/** Asks for a passage. */
export async function askPassage(client: RawClient, way: Way, target: string): Promise<Answer> {
  if (way === "tls") return { granted: true, code: undefined, text: "" };
  return way === "connect" ? await askConnect(client, target) : await askSocks(client, target);
}

async function askConnect(client: RawClient, target: string): Promise<Answer> {
  await client.send(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  const head = await client.takeHead();
  const code = Number(/^HTTP\/1\.1 (?<code>[0-9]{3}) /.exec(head)?.groups?.["code"]);
  return { granted: code === 200, code, text: head };
}

async function askSocks(client: RawClient, target: string): Promise<Answer> {
  await client.send(Buffer.from([5, 1, 0]));
  const greeting = await client.take(2);
  if (greeting[1] !== 0) return { granted: false, code: greeting[1], text: "" };
  await client.send(renderSocksRequest(target));
  const reply = await client.take(10);
  return { granted: reply[1] === 0, code: reply[1], text: "" };
}

/** A request for `host:port`, `1.2.3.4:port` or `[v6]:port`. */
export function renderSocksRequest(target: string, command = 1): Buffer {
  const [, host = "", port = ""] = /^(.*):([0-9]+)$/.exec(target) ?? [];
  const octets = /^[0-9]+(?:\.[0-9]+){3}$/.test(host) ? host.split(".").map(Number) : undefined;
  const groups = /^\[::(?<last>[0-9a-f]+)\]$/.exec(host)?.groups?.["last"];
  const address = octets !== undefined ? [1, ...octets] : groups !== undefined ? [4, ...Array.from({ length: 14 }, () => 0), 0, Number.parseInt(groups, 16)] : [3, Buffer.byteLength(host), ...Buffer.from(host)];
  return Buffer.from([5, command, 0, ...address, Number(port) >> 8, Number(port) & 0xff]);
}
