import { createECDH, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createAuthority, createIssuer } from "../../../lab/certificates.ts";
import { extension, makeHello, makeMessage, makeRecords, nameEntry, serverName, vector } from "../../../lab/client-hello.ts";
import { type OriginManner, startOrigin } from "./origin.ts";
import type { Way } from "./passages.ts";
import { HOST, openPath } from "./path.ts";
import { askPassage, startPassages } from "./passages.ts";
import { RawClient } from "./raw-client.ts";

const ALERT = Buffer.from([21, 3, 3, 0, 2, 2, 49]);
const CHANGE_CIPHER_SPEC = Buffer.from([20, 3, 3, 0, 1, 1]);
const EARLY_DATA = Buffer.concat([Buffer.from([23, 3, 3]), vector(2, Buffer.alloc(900, 5))]);
const RETRY = Buffer.from("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c", "hex");
const first = makeHello({ sni: HOST });

/** A ServerHello with this random, as much of it as matters here. */
const answer = (random: Buffer): Buffer => makeRecords(Buffer.concat([Buffer.from([2, 0, 0, 40, 3, 3]), random, Buffer.alloc(6)]), { version: [3, 3] });
/** Asks for another hello as soon as it has one, and hears everything. */
const retrying: OriginManner = (socket) => void socket.once("data", () => socket.write(answer(RETRY)));

const short = (number: number): Buffer => Buffer.from([number >> 8, number & 0xff]);
const heardOf = ({ origin }: { origin: { heard: readonly Buffer[] } }): Buffer => Buffer.concat(origin.heard);

describe.each<Way>(["connect", "socks", "tls"])("a second hello, which the server asks for, in a tunnel by %s", (way) => {
  test.each([
    { what: "of the same name", behind: makeHello({ sni: HOST, alpn: [] }) },
    { what: "of the same name behind a change of ciphers", behind: Buffer.concat([CHANGE_CIPHER_SPEC, makeHello({ sni: HOST })]) },
    { what: "of the same name in small records", behind: makeRecords(makeMessage({ sni: HOST }), { size: 20 }) },
  ])("$what is handed on, with what follows", async ({ behind }) => {
    await using path = await openPath(way, retrying);
    await path.client.send(first);
    expect(await path.client.take(answer(RETRY).length)).toEqual(answer(RETRY));
    await path.client.send(behind.subarray(0, 9), behind.subarray(9), "and more");
    while (heardOf(path).length < first.length + behind.length + 8) await new Promise((resolve) => void setTimeout(resolve, 5));
    expect(heardOf(path)).toEqual(Buffer.concat([first, behind, Buffer.from("and more")]));
  });

  test.each([
    { what: "of another name", behind: makeHello({ sni: "b.example.com" }) },
    { what: "of another name behind a change of ciphers", behind: Buffer.concat([CHANGE_CIPHER_SPEC, makeHello({ sni: "b.example.com" })]) },
    { what: "without a name", behind: makeHello({ sni: null }) },
    { what: "that may hide its name", behind: makeHello({ sni: HOST, ech: [0, 0] }) },
    { what: "that is malformed", behind: makeHello({ sni: "b.example.com\0" }) },
    { what: "that is no TLS", behind: Buffer.from("GET / HTTP/1.1\r\n\r\n") },
  ])("$what is refused, and not handed on", async ({ behind }) => {
    await using path = await openPath(way, retrying);
    await path.client.send(first);
    await path.client.take(answer(RETRY).length);
    await path.client.send(behind);
    expect(await path.client.rest()).toEqual(ALERT);
    expect(heardOf(path)).toEqual(first);
    const reasons = path.rig.readLog().flatMap((record) => (record.kind === "decision" && record.action === "deny" ? [record.reason] : []));
    expect(reasons).toEqual(["host_mismatch"]);
  });

  test("is looked at although it comes together with the first, ahead of the question for it", async () => {
    await using path = await openPath(way, retrying);
    await path.client.send(Buffer.concat([first, EARLY_DATA, makeHello({ sni: "b.example.com" })]));
    expect(await path.client.rest()).toEqual(Buffer.concat([answer(RETRY), ALERT]));
    expect(heardOf(path)).toEqual(first);
  });

  test("is looked at although the server's question comes byte by byte", async () => {
    await using path = await openPath(way, (socket) => {
      socket.once("data", () => {
        for (const [index, byte] of answer(RETRY).entries()) setTimeout(() => socket.write(Buffer.from([byte])), index);
      });
    });
    await path.client.send(first);
    await path.client.take(answer(RETRY).length);
    await path.client.send(makeHello({ sni: "b.example.com" }));
    expect(await path.client.rest()).toEqual(ALERT);
  });

  test("that ends half is refused", async () => {
    await using path = await openPath(way, retrying);
    await path.client.send(first);
    await path.client.take(answer(RETRY).length);
    path.client.socket.end(makeHello({ sni: HOST }).subarray(0, 40));
    expect(await path.client.rest()).toEqual(ALERT);
  });
});

describe.each<Way>(["connect", "socks", "tls"])("where the server asks for none, in a tunnel by %s,", (way) => {
  test("early data behind the hello are handed on with its answer", async () => {
    const random = randomBytes(32);
    await using path = await openPath(way, (socket) => void socket.once("data", () => socket.write(answer(random))));
    await path.client.send(Buffer.concat([first, EARLY_DATA]), EARLY_DATA);
    await path.client.take(answer(random).length);
    while (heardOf(path).length < first.length + 2 * EARLY_DATA.length) await new Promise((resolve) => void setTimeout(resolve, 5));
    expect(heardOf(path)).toEqual(Buffer.concat([first, EARLY_DATA, EARLY_DATA]));
  });

  test("a server that ends without an answer hears the rest", async () => {
    await using path = await openPath(way, (socket) => void socket.once("data", () => socket.end()));
    await path.client.send(Buffer.concat([first, EARLY_DATA]));
    await path.client.rest();
    path.client.socket.end();
    await once(path.server, "end");
    expect(heardOf(path)).toEqual(Buffer.concat([first, EARLY_DATA]));
  });

  test("a client that ends behind its hello ends for the server too", async () => {
    await using path = await openPath(way, (socket) => void socket.on("end", () => socket.end("never mind")));
    path.client.socket.end(first);
    expect((await path.client.rest()).toString()).toBe("never mind");
  });
});

describe("a real server that asks for a second hello", () => {
  let port: number;
  let close: () => void;
  const ecdh = createECDH("secp384r1");
  const share = ecdh.generateKeys();
  const session = randomBytes(32);
  const offer = (sni: string, group: number, key: Buffer): Buffer => {
    const only = [serverName(nameEntry(sni)), extension(43, Buffer.from([2, 3, 4])), extension(10, vector(2, short(29), short(24))), extension(13, vector(2, short(0x0403), short(0x0804))), extension(51, vector(2, short(group), vector(2, key)))];
    return makeRecords(makeMessage({ session, suites: Buffer.from([0x13, 1, 0x13, 2]), only }));
  };
  beforeAll(async () => {
    const context = await (await createIssuer(await createAuthority())).contextFor(HOST);
    const server = createServer({
      ecdhCurve: "secp384r1",
      SNICallback: (_name, done) => done(null, context),
    });
    server.on("tlsClientError", () => undefined);
    await once(server.listen(0, "127.0.0.1"), "listening");
    const where = server.address();
    port = where !== null && typeof where === "object" ? where.port : 0;
    close = () => void server.close();
  });
  afterAll(() => close());

  test.each([
    { what: "the same name goes on", second: HOST, isAnswered: true },
    { what: "another name, which the server would take, does not", second: "b.example.com", isAnswered: false },
  ])("$what", async ({ second, isAnswered }) => {
    await using unused = await startOrigin();
    await using rig = await startPassages("connect", { port: unused.port, allow: [`${HOST}:${port}`], hosts: { [HOST]: ["127.0.0.1"] } });
    await using client = await RawClient.open(rig.port);
    await askPassage(client, "connect", `${HOST}:${port}`);
    await client.send(offer(HOST, 29, randomBytes(32)));
    const question = await client.take(11 + 32);
    expect(question.subarray(11)).toEqual(RETRY);
    await client.take(question.readUInt16BE(3) + 5 - question.length);
    await client.send(Buffer.concat([CHANGE_CIPHER_SPEC, offer(second, 24, share)]));
    // The server's own change of ciphers, and then either its ServerHello or the proxy's alert.
    expect(await client.take(CHANGE_CIPHER_SPEC.length)).toEqual(CHANGE_CIPHER_SPEC);
    expect(await client.take(1)).toEqual(Buffer.from([isAnswered ? 22 : 21]));
  });
});
