import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http2";
import { text } from "node:stream/consumers";
import { beforeAll, describe, expect, test } from "vitest";
import { type Authorities, makeAuthorities, openHttp2, startHttp2, startInterception } from "./interception-rig.ts";

let authorities: Authorities;
beforeAll(async () => {
  authorities = await makeAuthorities();
});

type Told = { status: number | undefined; headers: IncomingHttpHeaders; body: string };

async function ask(session: ClientHttp2Session, headers: OutgoingHttpHeaders, body?: string): Promise<Told> {
  const stream: ClientHttp2Stream = session.request(headers, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  const answer = await new Promise<IncomingHttpHeaders & { ":status"?: number }>((resolve, reject) => {
    stream.once("response", resolve);
    stream.once("error", reject);
  });
  return { status: answer[":status"], headers: answer, body: await text(stream) };
}

describe("requests by HTTP/2", () => {
  test("reach the server by HTTP/2", async () => {
    await using origin = await startHttp2(await authorities.issuer.contextFor("a.example"), (server) => {
      server.on("stream", (stream, headers) => {
        stream.respond({ ":status": 200, "x-path": headers[":path"], "x-authority": headers[":authority"] });
        stream.end("hello");
      });
    });
    const target = `a.example:${origin.port}`;
    await using rig = await startInterception(authorities, { allow: [target], hosts: { "a.example": ["127.0.0.1"] } });
    await using session = await openHttp2(rig, target, authorities);
    expect(await ask(session, { ":path": "/x?y=1" })).toMatchObject({ status: 200, body: "hello", headers: { "x-path": "/x?y=1", "x-authority": target } });
    expect(await ask(session, { ":path": "/two" })).toMatchObject({ status: 200, body: "hello" });
    expect(origin.connections()).toBe(1);
  });
});
