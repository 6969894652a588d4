import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeHello } from "../../../lab/client-hello.ts";
import { echo, type Origin, startOrigin } from "./origin.ts";
import { askPassage, renderSocksRequest, startPassages, type Way } from "./passages.ts";
import { RawClient } from "./raw-client.ts";

const HOST = "a.example.com";
const ROUNDS = 1500;

let origin: Origin;
beforeAll(async () => void (origin = await startOrigin(echo)));
afterAll(async () => await origin[Symbol.asyncDispose]());

/** What a client begins with, for a host that is not allowed; every change of it must not make it one that is. */
const begin: Readonly<Record<Way, () => Buffer>> = {
  connect: () => Buffer.from(`CONNECT evil.example.org:${origin.port} HTTP/1.1\r\nHost: evil.example.org:${origin.port}\r\n\r\n`),
  socks: () => Buffer.concat([Buffer.from([5, 1, 0]), renderSocksRequest(`evil.example.org:${origin.port}`)]),
  tls: () => makeHello({ sni: "evil.example.org" }),
};

test.each<Way>(["connect", "socks", "tls"])("damaged beginnings by %s get no grant and end nothing but themselves", async (way) => {
  await using rig = await startPassages(way, { port: origin.port, allow: [`${HOST}:${origin.port}`], hosts: { [HOST]: ["127.0.0.1"], "evil.example.org": ["127.0.0.1"] } });
  const { connections } = origin;
  const whole = begin[way]();
  const damage = fc.tuple(fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 3 }), fc.nat(whole.length), fc.boolean());
  await fc.assert(
    fc.asyncProperty(damage, async ([changes, cut, resets]) => {
      const damaged = Buffer.from(whole);
      for (const [at, value] of changes) damaged[at] = value;
      await using client = await RawClient.open(rig.port);
      client.socket.write(damaged.subarray(0, cut));
      client.socket.write(damaged.subarray(cut));
      if (resets) client.socket.resetAndDestroy();
      else client.socket.end();
      await client.rest();
    }),
    { numRuns: ROUNDS, seed: 1928 },
  );
  expect(origin.connections).toBe(connections);
  expect(rig.context.flows.size).toBe(0);
  await using client = await RawClient.open(rig.port);
  expect((await askPassage(client, way, `${HOST}:${origin.port}`)).granted).toBe(true);
  await client.send(makeHello({ sni: HOST }));
  expect(await client.take(makeHello({ sni: HOST }).length)).toEqual(makeHello({ sni: HOST }));
});

test("damaged hellos in a tunnel reach the server only with the tunnel's own name", async () => {
  await using rig = await startPassages("connect", { port: origin.port, allow: [`${HOST}:${origin.port}`], hosts: { [HOST]: ["127.0.0.1"] } });
  const whole = makeHello({ sni: "b.example.com" });
  const at = whole.indexOf("b.example.com");
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(fc.integer({ min: 5, max: whole.length - 1 }), fc.nat(255)), { minLength: 1, maxLength: 3 }), async (changes) => {
      const damaged = Buffer.from(whole);
      for (const [place, value] of changes) damaged[place] = value;
      await using client = await RawClient.open(rig.port);
      await askPassage(client, "connect", `${HOST}:${origin.port}`);
      const before = origin.heard.length;
      client.socket.end(damaged);
      await client.rest();
      const isOwn = damaged.subarray(at, at + HOST.length).toString().toLowerCase() === HOST;
      expect(origin.heard.length > before && !isOwn).toBe(false);
    }),
    { numRuns: ROUNDS, seed: 8446 },
  );
});
