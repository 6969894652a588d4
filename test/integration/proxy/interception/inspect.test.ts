import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { beforeAll, describe, expect, test } from "vitest";
import type { DecisionRecord } from "../../../../policy/decision-record.ts";
import type { Rig, RigOptions } from "../web-rig.ts";
import { ask } from "./http2-client.ts";
import { type Authorities, makeAuthorities, openHttp2, openTls, startHttps, startInterception } from "./interception-rig.ts";

let authorities: Authorities;
beforeAll(async () => {
  authorities = await makeAuthorities();
});

const SECRET = "only-the-two-of-us-know-this";

async function open(settings: RigOptions["settings"]) {
  const stack = new AsyncDisposableStack();
  const origin = stack.use(await startHttps(await authorities.issuer.contextFor("a.example"), (server) => void server.on("request", (asked: IncomingMessage, response: ServerResponse) => {
    void asked.resume().once("end", () => response.end(SECRET.repeat(Number(asked.headers["x-times"]))));
  })));
  const target = `a.example:${origin.port}`;
  const rig = stack.use(await startInterception(authorities, { allow: [target], hosts: { "a.example": ["127.0.0.1"] }, ...(settings === undefined ? {} : { settings }) }));
  return { origin, target, rig, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** Closes the log, so that its open windows are written, and gives what was carried. */
function readTraffic(rig: Rig): DecisionRecord[] {
  rig.context.access.log.close();
  expect(JSON.stringify(rig.readLog())).not.toContain("two-of-us");
  return rig.readLog().filter((line) => line.kind === "traffic");
}

type Send = (rig: Rig, target: string, parts: { method: string; body?: string; times: number }) => Promise<void>;

const byHttp1: Send = async (rig, target, { method, body, times }) => {
  const tls = await openTls(rig, target, authorities);
  const framing = body === undefined ? "" : "Transfer-Encoding: chunked\r\n";
  tls.write(`${method} /${SECRET}?q=${SECRET} HTTP/1.1\r\nHost: ${target}\r\nConnection: close\r\nX-Times: ${times}\r\n${framing}\r\n`);
  if (body !== undefined) tls.write(`${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
  tls.resume();
  await once(tls, "close");
};

const byHttp2: Send = async (rig, target, { method, body, times }) => {
  await using session = await openHttp2(rig, target, authorities);
  await ask(session, { ":method": method, ":path": `/${SECRET}?q=${SECRET}`, "x-times": times }, body);
};

describe.each([{ protocol: "HTTP/1.1", send: byHttp1 }, { protocol: "HTTP/2", send: byHttp2 }])("sizes of bodies, by $protocol,", ({ send }) => {
  test("are written down with inspect, each up to a limit, and bodies never", async () => {
    await using opened = await open({ inspect: true, maxBodyBytes: 100 });
    const { rig, target } = opened;
    await send(rig, target, { method: "GET", times: 0 });
    await send(rig, target, { method: "POST", body: SECRET, times: 2 });
    await send(rig, target, { method: "POST", body: SECRET, times: 2 });
    await send(rig, target, { method: "PUT", body: SECRET.repeat(50), times: 1000 });
    await expect.poll(() => rig.context.flows.size).toBe(0);
    expect(readTraffic(rig)).toEqual([
      expect.objectContaining({ method: "GET", flows: 1, bodies: { up: 0, down: 0 } }),
      expect.objectContaining({ method: "POST", flows: 2, bodies: { up: SECRET.length, down: 2 * SECRET.length } }),
      expect.objectContaining({ method: "PUT", flows: 1, bodies: { up: 100, down: 100 } }),
    ]);
  });

  test("are not written down without inspect", async () => {
    await using opened = await open({});
    await send(opened.rig, opened.target, { method: "POST", body: SECRET, times: 2 });
    await expect.poll(() => opened.rig.context.flows.size).toBe(0);
    const [line] = readTraffic(opened.rig);
    expect(line).toMatchObject({ method: "POST", flows: 1 });
    expect(line).not.toHaveProperty("bodies");
  });
});

describe("what is not opened", () => {
  test("has no sizes of bodies, with inspect neither", async () => {
    await using opened = await open({ inspect: true, passesThrough: () => true });
    const { rig, target } = opened;
    const tls = await openTls(rig, target, { ...authorities, own: { certPem: authorities.site.certificate, keyPem: "" } });
    tls.write(`GET / HTTP/1.1\r\nHost: ${target}\r\nConnection: close\r\nX-Times: 1\r\n\r\n`);
    expect(await text(tls)).toContain(SECRET);
    await expect.poll(() => rig.context.flows.size).toBe(0);
    const [line] = readTraffic(rig);
    expect(line).toMatchObject({ method: "CONNECT", flows: 1 });
    expect(line).not.toHaveProperty("bodies");
  });
});
