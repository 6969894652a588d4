import { describe, expect, test } from "vitest";
import { decide } from "../../../policy/decide.ts";
import { buildEffectiveList } from "../../../policy/effective-list.ts";
import { isPublicSuffix } from "../../../policy/public-suffix.ts";
import { buildPolicy, type Policy } from "../../../policy/policy.ts";
import type { Methods, Use } from "../../../policy/use.ts";

function policyOf(methods: Methods): Policy {
  const words = ["a.example.com", "a.example.com:80", "b.example.com", "*.wild.example.com", "203.0.113.7"];
  const list = buildEffectiveList({ sources: [{ label: "list", surface: "list", words: words.map((text) => ({ text })) }], blocks: [{ label: "block", words: [{ text: "no.wild.example.com" }] }], critical: [], isPublicSuffix });
  return buildPolicy({ blocks: list.blocks, list: list.entries, methods });
}

const get = (...claims: string[]): Use => ({ kind: "request", method: "GET", claims });
const tunnel = (...claims: string[]): Use => ({ kind: "tunnel", via: "connect", intercepted: false, claims });

const request = (method: string): Use => ({ kind: "request", method });
const opaque = (via: "connect" | "socks" | "tls", intercepted = false): Use => ({ kind: "tunnel", via, intercepted });

describe("every combination of the names that a connection tells", () => {
  const rows: readonly [row: string, target: string, use: Use, reason: string][] = [
    ["allows a target that nothing else names", "a.example.com", tunnel(), "allowed"],
    ["allows the same SNI", "a.example.com", tunnel("a.example.com"), "allowed"],
    ["allows the same SNI spelt otherwise", "a.example.com", tunnel("A.Example.COM."), "allowed"],
    ["refuses another allowed SNI", "a.example.com", tunnel("b.example.com"), "host_mismatch"],
    ["refuses an SNI that is not allowed", "a.example.com", tunnel("evil.example.org"), "host_mismatch"],
    ["refuses an allowed SNI behind a target that is not", "evil.example.org", tunnel("a.example.com"), "not_allowed"],
    ["refuses a denied target before it looks at the SNI", "no.wild.example.com", tunnel("x.wild.example.com"), "denied"],
    ["refuses a malformed SNI", "a.example.com", tunnel("a.example.com\0.evil.org"), "host_mismatch"],
    ["refuses an empty SNI", "a.example.com", tunnel(""), "host_mismatch"],
    ["refuses a sibling below the same wildcard", "x.wild.example.com", tunnel("y.wild.example.com"), "host_mismatch"],
    ["allows a literal address that is listed", "203.0.113.7", tunnel(), "allowed"],
    ["refuses a name over a literal address", "203.0.113.7", tunnel("a.example.com"), "host_mismatch"],
    ["allows the same Host", "a.example.com", get("a.example.com"), "allowed"],
    ["allows the Host with the port of the connection", "a.example.com", get("a.example.com:443"), "allowed"],
    ["refuses the Host with another port", "a.example.com", get("a.example.com:8443"), "host_mismatch"],
    ["refuses another Host", "a.example.com", get("b.example.com"), "host_mismatch"],
    ["refuses an address as Host of a name", "a.example.com", get("203.0.113.7"), "host_mismatch"],
    ["refuses one wrong claim among right ones", "a.example.com", get("a.example.com", "a.example.com", "b.example.com"), "host_mismatch"],
  ];
  test.each(rows)("%s", (_row, target, use, reason) => {
    expect(decide(policyOf("full"), { host: target, port: 443, use }).reason).toBe(reason);
  });
});

describe("limited mode", () => {
  const rows: readonly [row: string, target: string, port: number, use: Use, reason: string][] = [
    ["allows GET", "a.example.com", 80, request("GET"), "allowed"],
    ["allows HEAD", "a.example.com", 80, request("HEAD"), "allowed"],
    ["allows OPTIONS", "a.example.com", 80, request("OPTIONS"), "allowed"],
    ["refuses POST", "a.example.com", 80, request("POST"), "method_not_allowed"],
    ["refuses a GET that asks for another protocol", "a.example.com", 80, { kind: "request", method: "GET", upgrade: true }, "method_not_allowed"],
    ["refuses get in lower case", "a.example.com", 80, request("get"), "method_not_allowed"],
    ["refuses an invented method", "a.example.com", 80, request("GETT"), "method_not_allowed"],
    ["tells the host's reason before the method's", "evil.example.org", 80, request("POST"), "not_allowed"],
    ["refuses CONNECT without interception", "a.example.com", 443, opaque("connect"), "mitm_required"],
    ["allows CONNECT with it", "a.example.com", 443, opaque("connect", true), "allowed"],
    ["refuses transparent TLS without interception", "a.example.com", 443, opaque("tls"), "mitm_required"],
    ["refuses SOCKS to 443 without interception", "a.example.com", 443, opaque("socks"), "mitm_required"],
    ["allows SOCKS to 443 with it", "a.example.com", 443, opaque("socks", true), "allowed"],
    ["refuses SOCKS to other ports", "a.example.com", 80, opaque("socks"), "method_not_allowed"],
  ];
  test.each(rows)("%s", (_row, host, port, use, reason) => {
    expect(decide(policyOf("limited"), { host, port, use }).reason).toBe(reason);
  });

  test("full mode has no objection to any of them", () => {
    const reasons = rows.filter(([, host]) => host !== "evil.example.org").map(([, host, port, use]) => decide(policyOf("full"), { host, port, use }).reason);
    expect(new Set(reasons)).toEqual(new Set(["allowed"]));
  });
});
