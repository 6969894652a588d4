import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeHello } from "../../../lab/client-hello.ts";
import type { Rig } from "../web-rig.ts";
import { echo, type Origin, startOrigin } from "./origin.ts";
import { startPassages } from "./passages.ts";
import { RawClient } from "./raw-client.ts";

const HOST = "a.example.com";

let origin: Origin;
beforeAll(async () => void (origin = await startOrigin(echo)));
afterAll(async () => await origin[Symbol.asyncDispose]());

const start = (): Promise<Rig> => startPassages("connect", { port: origin.port, allow: [`${HOST}:${origin.port}`, `[::1]:${origin.port}`], hosts: { [HOST]: ["127.0.0.1"] } });

describe("the target of CONNECT", () => {
  test.each<{ what: string; target: string }>([
    { what: "without a port", target: HOST },
    { what: "with an empty port", target: `${HOST}:` },
    { what: "with port 0", target: `${HOST}:0` },
    { what: "with a port beyond 65535", target: `${HOST}:65536` },
    { what: "with a port with a zero in front", target: `${HOST}:0PORT` },
    { what: "with a port that is a word", target: `${HOST}:https` },
    { what: "without a host", target: ":PORT" },
    { what: "with a user", target: `user@${HOST}:PORT` },
    { what: "with a scheme", target: `http://${HOST}:PORT` },
    { what: "with a path", target: `${HOST}:PORT/` },
    { what: "with a percent sign", target: "a%2eexample.com:PORT" },
    { what: "with an IPv6 address without brackets", target: "::1:PORT" },
    { what: "with a zone", target: "[::1%25lo]:PORT" },
    { what: "with an empty label", target: "a..example.com:PORT" },
    { what: "with an asterisk only", target: "*" },
    { what: "with a path only", target: "/" },
  ])("$what is malformed, and says so", async ({ target }) => {
    await using rig = await start();
    await using client = await RawClient.open(rig.port);
    const [connections, text] = [origin.connections, target.replace("PORT", String(origin.port))];
    await client.send(`CONNECT ${text} HTTP/1.1\r\nHost: ${HOST}:${origin.port}\r\n\r\n`);
    const answer = (await client.rest()).toString();
    expect(answer).toMatch(/^HTTP\/1\.1 400 [^]*\r\nConnection: close\r\n/);
    expect(origin.connections).toBe(connections);
    expect(rig.readLog()).toEqual([expect.objectContaining({ kind: "decision", action: "deny", reason: "denied" })]);
  });
});

describe("the answer to CONNECT", () => {
  test("is granted to a client that sends its hello ahead of it", async () => {
    await using rig = await start();
    await using client = await RawClient.open(rig.port);
    const hello = makeHello({ sni: HOST });
    await client.send(Buffer.concat([Buffer.from(`CONNECT ${HOST}:${origin.port} HTTP/1.1\r\nHost: ${HOST}:${origin.port}\r\n\r\n`), hello]));
    expect(await client.takeHead()).toBe("HTTP/1.1 200 Connection Established\r\n\r\n");
    expect(await client.take(hello.length)).toEqual(hello);
  });

  test("is granted to a client that sends half of its hello ahead of it", async () => {
    await using rig = await start();
    await using client = await RawClient.open(rig.port);
    const hello = makeHello({ sni: HOST });
    await client.send(Buffer.concat([Buffer.from(`CONNECT ${HOST}:${origin.port} HTTP/1.1\r\nHost: ${HOST}:${origin.port}\r\n\r\n`), hello.subarray(0, 50)]), hello.subarray(50));
    await client.takeHead();
    expect(await client.take(hello.length)).toEqual(hello);
  });

  test("of a refusal tells why in plain text, and how to allow it", async () => {
    await using rig = await start();
    await using client = await RawClient.open(rig.port);
    await client.send(`CONNECT evil.example.org:443 HTTP/1.1\r\nHost: evil.example.org:443\r\n\r\n`, makeHello({ sni: "evil.example.org" }));
    const answer = (await client.rest()).toString();
    expect(answer).toMatch(/^HTTP\/1\.1 403 Forbidden\r\nContent-Type: text\/plain/);
    expect(answer).toContain("\r\nx-proxy-error: blocked-by-allowlist\r\n");
    expect(answer).toContain("\r\nConnection: close\r\n");
    expect(answer).toContain("agentbox policy allow evil.example.org\n");
    expect(rig.asked).toEqual([]);
  });

  test("of a refusal arrives whole although the client goes on sending", async () => {
    await using rig = await start();
    await using client = await RawClient.open(rig.port);
    await client.send(Buffer.concat([Buffer.from("CONNECT evil.example.org:443 HTTP/1.1\r\nHost: evil.example.org:443\r\n\r\n"), Buffer.alloc(4 * 1024 * 1024)]));
    expect((await client.rest()).toString()).toContain("agentbox policy allow evil.example.org\n");
    expect(client.error).toBeUndefined();
  });

  test("of a failure is no refusal", async () => {
    await using rig = await start();
    await using client = await RawClient.open(rig.port);
    await client.send(`CONNECT [::1]:${origin.port} HTTP/1.1\r\nHost: [::1]:${origin.port}\r\n\r\n`);
    const answer = (await client.rest()).toString();
    expect(answer).toMatch(/^HTTP\/1\.1 502 Bad Gateway\r\n/);
    expect(answer).not.toContain("x-proxy-error");
  });
});
