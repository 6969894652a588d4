import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeHello } from "../../../lab/client-hello.ts";
import type { Rig } from "../web-rig.ts";
import { echo, type Origin, startOrigin } from "../tunnel/origin.ts";
import { renderSocksRequest, startPassages } from "../tunnel/passages.ts";
import { RawClient } from "../tunnel/raw-client.ts";

const HOST = "a.example.com";
const OPEN = Buffer.from([5, 1, 0]);
const ACCEPTED = Buffer.from([5, 0]);

let origin: Origin;
beforeAll(async () => void (origin = await startOrigin(echo)));
afterAll(async () => await origin[Symbol.asyncDispose]());

const start = (): Promise<Rig> => startPassages("socks", { port: origin.port, allow: [`${HOST}:${origin.port}`, `127.0.0.1:${origin.port}`, `bücher.example:${origin.port}`], hosts: { [HOST]: ["127.0.0.1"], "xn--bcher-kva.example": ["127.0.0.1"] } });
const reply = (code: number): Buffer => Buffer.from([5, code, 0, 1, 0, 0, 0, 0, 0, 0]);
const request = (host: string, command = 1): Buffer => renderSocksRequest(`${host}:${origin.port}`, command);
const port = (): readonly number[] => [origin.port >> 8, origin.port & 0xff];

describe("a client of SOCKS 5", () => {
  test.each<{ what: string; host: string }>([
    { what: "a name", host: HOST },
    { what: "a name in capitals with a dot at its end", host: "A.EXAMPLE.COM." },
    { what: "a name above ASCII", host: "bücher.example" },
    { what: "an IPv4 address", host: "127.0.0.1" },
  ])("reaches $what", async ({ host }) => {
    await using rig = await start();
    await using client = await RawClient.open(rig.port);
    await client.send(OPEN, request(host), "ping\r\n");
    expect(await client.take(12)).toEqual(Buffer.concat([ACCEPTED, reply(0)]));
    expect((await client.take(6)).toString()).toBe("ping\r\n");
  });

  test("reaches an IPv4 address that is written as a name, judged as the address", async () => {
    await using rig = await start();
    await using client = await RawClient.open(rig.port);
    await client.send(OPEN, Buffer.from([5, 1, 0, 3, 9, ...Buffer.from("127.0.0.1"), ...port()]));
    expect(await client.take(12)).toEqual(Buffer.concat([ACCEPTED, reply(0)]));
  });

  test("may send byte by byte", async () => {
    await using rig = await start();
    await using client = await RawClient.open(rig.port);
    await client.trickle(Buffer.concat([OPEN, request(HOST)]));
    expect(await client.take(12)).toEqual(Buffer.concat([ACCEPTED, reply(0)]));
    await client.trickle(makeHello({ sni: HOST }));
    expect(await client.take(makeHello({ sni: HOST }).length)).toEqual(makeHello({ sni: HOST }));
  });

  test("may send everything at once", async () => {
    await using rig = await start();
    await using client = await RawClient.open(rig.port);
    const hello = makeHello({ sni: HOST });
    await client.send(Buffer.concat([OPEN, request(HOST), hello]));
    expect(await client.take(12)).toEqual(Buffer.concat([ACCEPTED, reply(0)]));
    expect(await client.take(hello.length)).toEqual(hello);
  });

  test.each<{ what: string; say: () => Buffer; answer: () => Buffer; logs?: string }>([
    { what: "that wants to bind", say: () => request(HOST, 2), answer: () => reply(7), logs: "there is no command 2" },
    { what: "that wants datagrams", say: () => request(HOST, 3), answer: () => reply(7), logs: "there is no command 3" },
    { what: "with a command that does not exist", say: () => request(HOST, 9), answer: () => reply(7) },
    { what: "with an address type that does not exist", say: () => Buffer.from([5, 1, 0, 2, 1, 1]), answer: () => reply(8), logs: "there is no address type 2" },
    { what: "with its reserved byte used", say: () => Buffer.from([5, 1, 7, 1, 127, 0, 0, 1, ...port()]), answer: () => reply(1), logs: "the reserved byte is used" },
    { what: "without a port", say: () => renderSocksRequest(`${HOST}:0`), answer: () => reply(1), logs: "without a port" },
    { what: "with a request of SOCKS 4", say: () => Buffer.from([4, 1, 0, 80, 127, 0, 0, 1, 0]), answer: () => Buffer.alloc(0), logs: "not of SOCKS 5" },
    { what: "for an empty name", say: () => request(""), answer: () => reply(2), logs: "empty" },
    { what: "for a name with a NUL", say: () => request(`${HOST}\0.evil.example.org`), answer: () => reply(2), logs: "control character" },
    { what: "for a name of broken UTF-8", say: () => Buffer.from([5, 1, 0, 3, 3, 0xff, 0xfe, 0x61, ...port()]), answer: () => reply(2) },
    { what: "for a name with a port inside", say: () => request(`${HOST}:443`), answer: () => reply(2) },
    { what: "for an address in octal", say: () => Buffer.from([5, 1, 0, 3, 9, ...Buffer.from("127.0.0.01".slice(0, 9)), ...port()]), answer: () => reply(2) },
    { what: "for an address as one number", say: () => Buffer.from([5, 1, 0, 3, 10, ...Buffer.from("2130706433"), ...port()]), answer: () => reply(2) },
    { what: "for an IPv4 address inside IPv6 that is not listed", say: () => Buffer.from([5, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 9, ...port()]), answer: () => reply(2) },
  ])("$what is refused", async ({ say, answer, logs }) => {
    await using rig = await start();
    await using client = await RawClient.open(rig.port);
    const { connections } = origin;
    await client.send(OPEN, say());
    expect(await client.take(2)).toEqual(ACCEPTED);
    expect(await client.rest()).toEqual(answer());
    expect(origin.connections).toBe(connections);
    const log = rig.readLog();
    expect(log).toEqual([expect.objectContaining({ kind: "decision", action: "deny", protocol: "socks5-tcp" })]);
    expect(JSON.stringify(log)).toContain(logs ?? "");
  });

  test.each<{ what: string; say: Buffer; answer: Buffer }>([
    { what: "offers a password only", say: Buffer.from([5, 1, 2]), answer: Buffer.from([5, 0xff]) },
    { what: "offers nothing", say: Buffer.from([5, 0]), answer: Buffer.from([5, 0xff]) },
    { what: "speaks SOCKS 4", say: Buffer.from([4, 1, 0, 80, 127, 0, 0, 1, 0]), answer: Buffer.alloc(0) },
    { what: "speaks SOCKS 4a", say: Buffer.concat([Buffer.from([4, 1, 0, 80, 0, 0, 0, 1, 0]), Buffer.from(`${HOST}\0`)]), answer: Buffer.alloc(0) },
    { what: "speaks HTTP", say: Buffer.from(`CONNECT ${HOST}:443 HTTP/1.1\r\n\r\n`), answer: Buffer.alloc(0) },
    { what: "speaks TLS", say: makeHello(), answer: Buffer.alloc(0) },
  ])("that $what is refused at its greeting", async ({ say, answer }) => {
    await using rig = await start();
    await using client = await RawClient.open(rig.port);
    await client.send(say);
    expect(await client.rest()).toEqual(answer);
    expect(rig.readLog()).toEqual([expect.objectContaining({ kind: "decision", action: "deny", reason: "denied", port: null })]);
  });

  test("that says nothing, or half, is let go after a while", async () => {
    await using rig = await start();
    await using nothing = await RawClient.open(rig.port);
    await using half = await RawClient.open(rig.port);
    await half.send(OPEN, request(HOST).subarray(0, 9));
    expect(await nothing.rest()).toEqual(Buffer.alloc(0));
    expect(await half.rest()).toEqual(ACCEPTED);
    expect(nothing.ended && half.ended).toBe(true);
    expect(JSON.stringify(rig.readLog())).toContain("not whole after 10 s");
  });

  test("that leaves in the middle harms nobody", async () => {
    await using rig = await start();
    for (const part of [OPEN.subarray(0, 1), OPEN, Buffer.concat([OPEN, request(HOST).subarray(0, 5)]), Buffer.concat([OPEN, request(HOST)])]) {
      await using client = await RawClient.open(rig.port);
      await client.send(part);
      client.socket.resetAndDestroy();
    }
    await using client = await RawClient.open(rig.port);
    await client.send(OPEN, request(HOST));
    expect(await client.take(12)).toEqual(Buffer.concat([ACCEPTED, reply(0)]));
  });
});
