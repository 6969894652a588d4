import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { type Address, parseAddress } from "../../../../policy/address.ts";
import type { Admitted } from "../../../../proxy/access/access.ts";
import { Dialler } from "../../../../proxy/access/dial.ts";
import type { UpstreamConnection } from "../../../../proxy/http/upstream-connection.ts";
import { UpstreamConnections } from "../../../../proxy/http/upstream-connections.ts";
import { type Origin, startOrigin } from "../tunnel/origin.ts";

const KEY = "http a.example.com 80";
const EPOCH = 7;

function addressOf(text: string): Address {
  const address = parseAddress(text);
  if (!address.ok) throw new Error(text);
  return address.value;
}

function admittedTo(...addresses: readonly string[]): Admitted {
  return { ok: true, host: { kind: "name", name: "a.example.com" }, name: "a.example.com", port: 80, addresses: addresses.map(addressOf), opaque: false, epoch: EPOCH };
}

async function open(pool: UpstreamConnections, origin: Origin, key = KEY): Promise<UpstreamConnection> {
  const dialler = new Dialler({ lookup: () => ({ ok: false, why: "nobody asks" }) });
  const dialled = await dialler.dial({ ...admittedTo("127.0.0.1"), port: origin.port }, undefined);
  if (!dialled.ok) throw new Error(dialled.why);
  return pool.adopt(dialled.connection, key, EPOCH);
}

describe("an idle connection", () => {
  const rows: readonly [row: string, key: string, admitted: Admitted, taken: boolean][] = [
    ["is taken for the same place", KEY, admittedTo("127.0.0.1"), true],
    ["is taken where its address is one of several", KEY, admittedTo("127.0.0.2", "127.0.0.1"), true],
    ["is not taken where the name leads elsewhere now", KEY, admittedTo("127.0.0.2"), false],
    ["is not taken under another policy", KEY, { ...admittedTo("127.0.0.1"), epoch: EPOCH + 1 }, false],
    ["is not taken for another name", "http b.example.com 80", admittedTo("127.0.0.1"), false],
    ["is not taken for another scheme", "https a.example.com 80", admittedTo("127.0.0.1"), false],
  ];
  test.each(rows)("%s", async (_row, key, admitted, taken) => {
    await using origin = await startOrigin(() => undefined);
    const pool = new UpstreamConnections();
    const connection = await open(pool, origin);
    pool.give(connection, 0);
    expect(pool.take(key, admitted)).toBe(taken ? connection : undefined);
    connection.destroy();
  });

  test("is closed after 15 ticks, or with its policy", async () => {
    await using origin = await startOrigin(() => undefined);
    const pool = new UpstreamConnections();
    pool.give(await open(pool, origin), 100);
    pool.give(await open(pool, origin), 105);
    pool.sweep(114, EPOCH);
    expect(pool.size).toBe(2);
    pool.sweep(115, EPOCH);
    expect(pool.size).toBe(1);
    pool.sweep(115, EPOCH + 1);
    expect(pool.size).toBe(0);
  });

  test("is forgotten when its server closes it", async () => {
    await using origin = await startOrigin(() => undefined);
    const pool = new UpstreamConnections();
    pool.give(await open(pool, origin), 0);
    while (origin.sockets.length === 0) await sleep(1);
    origin.sockets[0]?.end();
    while (pool.size > 0) await sleep(1);
    expect(pool.take(KEY, admittedTo("127.0.0.1"))).toBeUndefined();
  });

  test("is one of 64 to a place at most, and of 512 in all", async () => {
    await using origin = await startOrigin(() => undefined);
    const pool = new UpstreamConnections();
    for (let count = 0; count < 66; count += 1) pool.give(await open(pool, origin), 0);
    expect(pool.size).toBe(64);
    for (let count = 0; count < 460; count += 1) pool.give(await open(pool, origin, `http ${count}.example.com 80`), 0);
    expect(pool.size).toBe(512);
    pool.sweep(15, EPOCH);
    expect(pool.size).toBe(0);
  });
});
