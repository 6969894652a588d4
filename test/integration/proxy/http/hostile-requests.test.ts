import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { serveHttp } from "../../../../proxy/http/http-listener.ts";
import { makeRandom, mutate, pick, type Random } from "../../../unit/proxy/http/random.ts";
import { RawClient } from "../tunnel/raw-client.ts";
import { startRig } from "../web-rig.ts";
import { HOST, takeAnswer } from "./http-rig.ts";

const CONNECTIONS = 5000;

function makeRequest(random: Random, authority: string): string {
  const body = pick(random, ["", "", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"]);
  const content = body === "" ? "" : body.startsWith("C") ? "hello" : "5\r\nhello\r\n0\r\n\r\n";
  const fields = `${pick(random, ["", "Connection: close\r\n", "Connection: x-a\r\nX-A: 1\r\n", "Expect: 100-continue\r\n"])}${body}`;
  return `${pick(random, ["GET", "POST", "PUT", "OPTIONS"])} http://${authority}${pick(random, ["/", "/x", ""])} HTTP/1.1\r\nHost: ${authority}\r\n${fields}\r\n${content}`;
}

/** What an independent reader of HTTP, that of Node, takes the forwarded bytes for. */
test(`${CONNECTIONS} connections with mutated requests: every one ends, and the server sees only whole requests for the allowed name`, { timeout: 200_000 }, async () => {
  const [wrong, codes]: [string[], string[]] = [[], []];
  let requests = 0;
  const server = createServer({ requireHostHeader: true }, (request: IncomingMessage, response) => {
    requests += 1;
    const { host } = request.headers;
    if (host !== authority || request.url?.includes("smuggled") === true || request.url?.startsWith("http") === true) wrong.push(`${request.method} ${request.url} ${host}`);
    request.resume().on("end", () => response.end("ok"));
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    codes.push(error.code ?? error.message);
    socket.destroy();
  });
  server.on("connect", () => wrong.push("CONNECT"));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const where = server.address();
  const port = typeof where === "object" && where !== null ? where.port : 0;
  const authority = `${HOST}:${port}`;
  await using rig = await startRig({ allow: [authority], hosts: { [HOST]: ["127.0.0.1"] }, parts: {}, serve: serveHttp });
  const random = makeRandom(20_261_104);
  const talk = async (): Promise<void> => {
    const text = Array.from({ length: 1 + random(3) }, () => mutate(random, makeRequest(random, authority))).join("");
    const socket = connect({ port: rig.port, host: "127.0.0.1" });
    socket.on("error", () => undefined);
    const cut = random(text.length);
    socket.write(text.slice(0, cut), "latin1");
    if (random(2) === 0) await new Promise((resolve) => void setImmediate(resolve));
    if (random(20) === 0) socket.resetAndDestroy();
    else socket.end(text.slice(cut), "latin1");
    socket.resume();
    if (!socket.closed) await once(socket, "close");
  };
  for (let done = 0; done < CONNECTIONS; done += 20) await Promise.all(Array.from({ length: 20 }, talk));
  await using client = await RawClient.open(rig.port);
  await client.send(`GET http://${authority}/ HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  expect((await takeAnswer(client)).status).toBe(200);
  expect(wrong).toEqual([]);
  // Methods that Node does not know are methods all the same, and an aborted request is none.
  expect(codes.filter((code) => code !== "HPE_INVALID_METHOD" && code !== "ECONNRESET")).toEqual([]);
  expect(requests).toBeGreaterThan(CONNECTIONS / 4);
  expect(rig.asked.filter((name) => name !== HOST)).toEqual([]);
  server.closeAllConnections();
  server.close();
});
