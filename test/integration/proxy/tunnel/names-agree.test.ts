import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DecisionRecord } from "../../../../policy/decision-record.ts";
import { makeHello } from "../../../lab/client-hello.ts";
import type { Rig } from "../web-rig.ts";
import { echo, type Origin, startOrigin } from "./origin.ts";
import { askPassage, startPassages, type Way } from "./passages.ts";
import { RawClient } from "./raw-client.ts";

const ALERT = Buffer.from([21, 3, 3, 0, 2, 2, 49]);

let origin: Origin;
beforeAll(async () => void (origin = await startOrigin(echo)));
afterAll(async () => await origin[Symbol.asyncDispose]());

const leads = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, ["127.0.0.1"]]));

async function start(way: Way): Promise<Rig> {
  const { port } = origin;
  const allow = ["a.example.com", "b.example.com", "*.wild.example.com", "local.example.com", "gone.example.com", "127.0.0.1"].map((host) => `${host}:${port}`);
  const hosts = { ...leads("a.example.com", "b.example.com", "evil.example.org", "x.wild.example.com", "y.wild.example.com", "no.wild.example.com"), "local.example.com": ["127.0.0.5"] };
  return await startPassages(way, { port, allow, block: ["no.wild.example.com"], hosts, allowPrivate: ["127.0.0.1/32"] });
}

const hello = (sni: string | null): Buffer => makeHello({ sni });
const get = (host: string | undefined, target = "/"): string => `GET ${target} HTTP/1.1\r\n${host === undefined ? "" : `Host: ${host}\r\n`}\r\n`;

/** The decision that a row is about: the last one of the log. */
function lastDecision(rig: Rig): Extract<DecisionRecord, { kind: "decision" }> | undefined {
  return rig.readLog().filter((record) => record.kind === "decision").at(-1);
}

/** What a client hears in the end: the server's own words, an answer of the proxy in HTTP, its alert, or nothing. */
type Heard = "echo" | "200" | "403" | "alert" | "end";

async function hear(client: RawClient, words: Buffer, isAllowed: boolean): Promise<string> {
  if (words.includes("HTTP/1.1")) return /^HTTP\/1\.1 (?<status>[0-9]{3}) /.exec(await client.takeHead())?.groups?.["status"] ?? "no answer";
  if (isAllowed) return (await client.take(words.length)).equals(words) ? "echo" : "other bytes";
  return (await client.rest()).equals(ALERT) ? "alert" : "end";
}

type Passage = { what: string; target: string; say: Buffer | string; heard: Heard; reason: string; protocol?: string; detail?: string };

/** Targets that are granted, and what the client says inside. `PORT` stands for the server's. */
const PASSAGES: readonly Passage[] = [
  { what: "an allowed target, and a protocol without names", target: "a.example.com", say: "SSH-2.0-x\r\n", heard: "echo", reason: "allowed" },
  { what: "an allowed target with the same server name", target: "a.example.com", say: hello("a.example.com"), heard: "echo", reason: "allowed" },
  { what: "an allowed target with the same server name spelt otherwise", target: "a.example.com", say: hello("A.Example.COM."), heard: "echo", reason: "allowed" },
  { what: "an allowed target spelt otherwise", target: "A.EXAMPLE.com.", say: hello("a.example.com"), heard: "echo", reason: "allowed" },
  { what: "an allowed target with another allowed server name", target: "a.example.com", say: hello("b.example.com"), heard: "alert", reason: "host_mismatch", protocol: "tls-sni" },
  { what: "an allowed target with a server name that is not allowed", target: "a.example.com", say: hello("evil.example.org"), heard: "alert", reason: "host_mismatch", protocol: "tls-sni" },
  { what: "an allowed target with a denied server name", target: "a.example.com", say: hello("no.wild.example.com"), heard: "alert", reason: "host_mismatch", protocol: "tls-sni" },
  { what: "an allowed target without a server name", target: "a.example.com", say: hello(null), heard: "alert", reason: "host_mismatch", protocol: "tls-sni", detail: "no server name" },
  { what: "an allowed target with its address as server name", target: "a.example.com", say: hello("127.0.0.1"), heard: "alert", reason: "host_mismatch", protocol: "tls-sni" },
  { what: "a name below a wildcard with a sibling as server name", target: "x.wild.example.com", say: hello("y.wild.example.com"), heard: "alert", reason: "host_mismatch", protocol: "tls-sni" },
  { what: "a name below a wildcard", target: "x.wild.example.com", say: hello("x.wild.example.com"), heard: "echo", reason: "allowed" },
  { what: "an allowed target with a malformed hello", target: "a.example.com", say: makeHello({ sni: "a.example.com\0b.example.com" }), heard: "alert", reason: "denied", protocol: "tls-sni", detail: "malformed TLS hello" },
  { what: "a listed address without a server name", target: "127.0.0.1", say: hello(null), heard: "echo", reason: "allowed" },
  { what: "a listed address with itself as server name", target: "127.0.0.1", say: hello("127.0.0.1"), heard: "echo", reason: "allowed" },
  { what: "a listed address with the server name of an allowed host", target: "127.0.0.1", say: hello("a.example.com"), heard: "alert", reason: "host_mismatch", protocol: "tls-sni" },
  { what: "a listed address with a server name that is not allowed", target: "127.0.0.1", say: hello("evil.example.org"), heard: "alert", reason: "host_mismatch", protocol: "tls-sni" },
  { what: "an allowed target with the same Host", target: "a.example.com", say: get("a.example.com:PORT"), heard: "200", reason: "allowed" },
  { what: "an allowed target with the same Host spelt otherwise", target: "a.example.com", say: get("A.Example.com.:PORT"), heard: "200", reason: "allowed" },
  { what: "an allowed target with another allowed Host", target: "a.example.com", say: get("b.example.com:PORT"), heard: "403", reason: "host_mismatch" },
  { what: "an allowed target with a Host that is not allowed", target: "a.example.com", say: get("evil.example.org"), heard: "403", reason: "host_mismatch" },
  { what: "an allowed target with the same Host and another port", target: "a.example.com", say: get("a.example.com:1"), heard: "403", reason: "host_mismatch" },
  { what: "an allowed target with another allowed absolute URI", target: "a.example.com", say: get("a.example.com:PORT", "http://b.example.com:PORT/"), heard: "403", reason: "host_mismatch" },
  { what: "an allowed target with HTTP/2 that is not encrypted", target: "a.example.com", say: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", heard: "end", reason: "denied", protocol: "tls-sni", detail: "HTTP/2 without TLS" },
];

/** Targets that are refused, and the code of each protocol for it. */
const REFUSED: readonly { what: string; target: string; status: number; reply: number; reason: string; detail?: string }[] = [
  { what: "an address that is not listed, although an allowed name leads there", target: "127.0.0.5", status: 403, reply: 2, reason: "not_allowed" },
  { what: "a target that is not allowed", target: "evil.example.org", status: 403, reply: 2, reason: "not_allowed" },
  { what: "a denied target below an allowed wildcard", target: "no.wild.example.com", status: 403, reply: 2, reason: "denied" },
  { what: "an allowed target that leads to a local address", target: "local.example.com", status: 403, reply: 2, reason: "not_allowed_local" },
  { what: "an allowed target that does not exist", target: "gone.example.com", status: 502, reply: 4, reason: "allowed", detail: "does not exist" },
  { what: "an IPv6 address that is not listed", target: "[::1]", status: 403, reply: 2, reason: "not_allowed" },
];

describe.each<{ way: "connect" | "socks"; own: string }>([
  { way: "connect", own: "https-connect" },
  { way: "socks", own: "socks5-tcp" },
])("asked for by $way", ({ way, own }) => {
  test.each(PASSAGES)("$what: $reason", async ({ target, say, heard, reason, protocol, detail = "" }) => {
    await using rig = await start(way);
    await using client = await RawClient.open(rig.port);
    const before = origin.heard.length;
    expect((await askPassage(client, way, `${target}:${origin.port}`)).granted).toBe(true);
    const words = Buffer.from(typeof say === "string" ? say.replaceAll("PORT", String(origin.port)) : say);
    await client.send(words);
    expect(await hear(client, words, reason === "allowed")).toBe(heard);
    expect(origin.heard.length > before).toBe(reason === "allowed");
    const decision = lastDecision(rig);
    expect(decision).toMatchObject({ action: reason === "allowed" ? "allow" : "deny", reason, protocol: protocol ?? own, port: origin.port });
    expect(decision?.detail ?? "").toContain(detail);
  });

  test.each(REFUSED)("$what: $reason", async ({ target, status, reply, reason, detail = "" }) => {
    await using rig = await start(way);
    await using client = await RawClient.open(rig.port);
    const { connections } = origin;
    const { code } = await askPassage(client, way, `${target}:${origin.port}`);
    expect(code).toBe(way === "connect" ? status : reply);
    await client.rest();
    expect(origin.connections).toBe(connections);
    expect(lastDecision(rig)).toMatchObject({ action: reason === "allowed" ? "allow" : "deny", reason, protocol: own, port: origin.port });
    expect(lastDecision(rig)?.detail ?? "").toContain(detail);
  });
});

describe("redirected TLS", () => {
  test.each<{ what: string; say: Buffer | string; reason: string; detail?: string }>([
    { what: "an allowed server name", say: hello("a.example.com"), reason: "allowed" },
    { what: "an allowed server name spelt otherwise", say: hello("A.Example.COM."), reason: "allowed" },
    { what: "a name below a wildcard", say: hello("x.wild.example.com"), reason: "allowed" },
    { what: "a listed address as server name", say: hello("127.0.0.1"), reason: "allowed" },
    { what: "a server name that is not allowed", say: hello("evil.example.org"), reason: "not_allowed" },
    { what: "a denied server name", say: hello("no.wild.example.com"), reason: "denied" },
    { what: "an allowed server name that leads to a local address", say: hello("local.example.com"), reason: "not_allowed_local" },
    { what: "an address that is not listed as server name", say: hello("127.0.0.5"), reason: "not_allowed" },
    { what: "no server name", say: hello(null), reason: "host_mismatch", detail: "no server name" },
    { what: "a malformed hello", say: makeHello({ sni: "a.example.com:443" }), reason: "denied", detail: "malformed TLS hello" },
    { what: "an alert ahead of an allowed hello", say: Buffer.concat([Buffer.from([21, 3, 1, 0, 2, 1, 0]), hello("a.example.com")]), reason: "denied", detail: "type 21" },
    { what: "SSH", say: "SSH-2.0-x\r\n", reason: "denied", detail: "this is not TLS" },
    { what: "HTTP with an allowed Host", say: get("a.example.com"), reason: "denied", detail: "this is not TLS" },
  ])("$what: $reason", async ({ say, reason, detail = "" }) => {
    await using rig = await start("tls");
    await using client = await RawClient.open(rig.port);
    const before = origin.heard.length;
    const words = Buffer.from(say);
    await client.send(words);
    const isAllowed = reason === "allowed";
    expect(isAllowed ? await client.take(words.length) : await client.rest()).toEqual(isAllowed ? words : ALERT);
    expect(origin.heard.length > before).toBe(isAllowed);
    expect(lastDecision(rig)).toMatchObject({ action: isAllowed ? "allow" : "deny", reason, protocol: "tls-sni", port: origin.port });
    expect(lastDecision(rig)?.detail ?? "").toContain(detail);
  });

  test("of a name that does not exist is reset, as it is without a proxy", async () => {
    await using rig = await start("tls");
    await using client = await RawClient.open(rig.port);
    await client.send(hello("gone.example.com"));
    await client.rest();
    expect(client.error?.code).toBe("ECONNRESET");
    expect(lastDecision(rig)).toMatchObject({ action: "allow", detail: "the name does not exist" });
  });
});
