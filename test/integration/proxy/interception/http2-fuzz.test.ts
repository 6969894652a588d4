import type { ServerHttp2Stream } from "node:http2";
import { beforeAll, expect, test } from "vitest";
import { ask } from "./http2-client.ts";
import { PREFACE, renderFrame, renderHead } from "./http2-frames.ts";
import { type Authorities, makeAuthorities, openHttp2, openTls, startHttp2, startInterception } from "./interception-rig.ts";

const CONNECTIONS = 400;
const FRAMES = 12;

let authorities: Authorities;
beforeAll(async () => {
  authorities = await makeAuthorities();
});

/** The same numbers in every run (mulberry32). */
function makeRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

test(`of ${CONNECTIONS * FRAMES} damaged and misplaced frames none makes the proxy ask for another host, and it goes on`, async () => {
  const seen: string[] = [];
  await using origin = await startHttp2(await authorities.issuer.contextFor("a.example"), (server) => void server.on("stream", (stream: ServerHttp2Stream, headers) => {
    stream.on("error", () => undefined);
    seen.push(`${headers[":scheme"]} ${headers[":authority"]} ${headers["host"] ?? "-"}`);
    stream.resume().respond({ ":status": 200 }, { endStream: true });
  }));
  const target = `a.example:${origin.port}`;
  await using rig = await startInterception(authorities, { allow: [target, `b.example:${origin.port}`], hosts: { "a.example": ["127.0.0.1"], "b.example": ["127.0.0.1"] } });
  const random = makeRandom(17);
  const pick = <T>(list: readonly T[]): T => list[random(list.length)] ?? list[0] ?? fail();
  const makeFrame = (stream: number): Buffer => {
    const authority = pick([target, "b.example", "a.example", "evil.example", `a.example:${origin.port}\r\nhost: b.example`]);
    const frame = pick([
      () => renderHead(stream, { method: pick(["GET", "POST", "CONNECT", "get", "A B"]), authority, path: pick(["/", "*", "https://b.example/", "/\r\n"]) }, pick([[], [["host", "b.example"]], [["host", target]], [["transfer-encoding", "chunked"]], [["content-length", "5"]], [[":authority", "b.example"]]])),
      () => renderHead(stream, { method: "GET", authority, path: "/" }),
      () => renderHead(stream, { method: "POST", authority: target, path: "/" }),
      () => renderFrame("data", Math.max(stream - 2, 1), Buffer.alloc(random(64), random(256)), random(2)),
      () => renderFrame("reset", Math.max(stream - 2, 1), Buffer.from([0, 0, 0, random(16)])),
      () => (random(4) > 0 ? renderFrame("ping", 0, Buffer.alloc(8)) : renderFrame(pick(["headers", "continuation", "settings", "goaway", "data"] as const), pick([0, stream]), Buffer.alloc(random(24), random(256)), random(256))),
    ])();
    if (random(12) === 0) frame[random(frame.length)] = random(256);
    return frame;
  };
  for (let round = 0; round < CONNECTIONS; round += 1) {
    const tls = await openTls(rig, target, authorities, ["h2"]);
    const closed = new Promise<void>((resolve) => void tls.once("close", resolve));
    tls.resume().write(Buffer.concat([PREFACE, ...Array.from({ length: FRAMES }, (_, index) => makeFrame(2 * (random(12) === 0 ? random(index + 1) : index) + 1))]));
    // A wrong frame ends the connection; one without goes on until its client leaves.
    await Promise.race([new Promise((resolve) => setTimeout(resolve, random(50))), closed]);
    tls.destroy();
  }
  await using session = await openHttp2(rig, target, authorities);
  expect((await ask(session, { ":path": "/" })).status).toBe(200);
  expect(seen.length).toBeGreaterThan(10);
  expect(new Set(seen)).toEqual(new Set([`https ${target} -`]));
  await expect.poll(() => rig.context.flows.size, { timeout: 20_000 }).toBe(1);
});

function fail(): never {
  throw new Error("an empty list");
}
