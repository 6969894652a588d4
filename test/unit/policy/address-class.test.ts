import { describe, expect, test } from "vitest";
import { parseAddress } from "../../../policy/address.ts";
import { classifyAddress } from "../../../policy/address-class.ts";

const special: readonly [row: string, text: string, name: string][] = [
  ["loopback", "127.0.0.1", "loopback"],
  ["the last loopback address", "127.255.255.255", "loopback"],
  ["this network", "0.0.0.0", "this network"],
  ["private use", "10.1.2.3", "private use"],
  ["the upper end of 172.16.0.0/12", "172.31.255.255", "private use"],
  ["Docker's default bridge", "172.17.0.1", "private use"],
  ["CGNAT", "100.64.0.1", "shared address space"],
  ["link-local", "169.254.1.1", "link-local"],
  ["the metadata address", "169.254.169.254", "cloud metadata"],
  ["a metadata address that looks public", "168.63.129.16", "cloud metadata"],
  ["the canary", "198.51.100.1", "documentation"],
  ["benchmarking", "198.19.255.255", "benchmarking"],
  ["multicast", "224.0.0.251", "multicast"],
  ["broadcast", "255.255.255.255", "limited broadcast"],
  ["IPv6 loopback", "::1", "loopback"],
  ["IPv6 unspecified", "::", "unspecified"],
  ["unique local", "fd12::1", "unique local"],
  ["IPv6 link-local", "fe80::1", "link-local"],
  ["IPv6 multicast", "ff02::1", "multicast"],
  ["IPv6 documentation", "2001:db8::1", "documentation"],
  ["newer IPv6 documentation", "3fff::1", "documentation"],
  ["IPv6 outside global unicast", "4000::1", "not global unicast"],
  ["loopback mapped into IPv6", "::ffff:127.0.0.1", "loopback"],
  ["loopback in an IPv4-compatible address", "::127.0.0.1", "loopback"],
  ["a public address in an IPv4-compatible address", "::8.8.8.8", "not global unicast"],
  ["a private address inside 6to4", "2002:a00:1::", "private use"],
  ["loopback inside NAT64", "64:ff9b::127.0.0.1", "loopback"],
  ["metadata inside NAT64", "64:ff9b::a9fe:a9fe", "cloud metadata"],
  ["local-use NAT64 whatever it holds", "64:ff9b:1::8.8.8.8", "local-use"],
  ["a Teredo client at loopback", "2001:0:808:808::80ff:fffe", "loopback"],
  ["a Teredo server in a private network", "2001:0:a00:1::f7f7:f7f7", "private use"],
  ["loopback inside ISATAP", "2606:4700::5efe:7f00:1", "loopback"],
  ["loopback inside ISATAP with the universal bit", "2606:4700::200:5efe:7f00:1", "loopback"],
  ["ISATAP in a link-local network", "fe80::5efe:808:808", "link-local"],
];

const open: readonly [row: string, text: string][] = [
  ["an ordinary IPv4 address", "140.82.112.3"],
  ["an ordinary IPv6 address", "2606:50c0::153"],
  ["the address after private use", "11.0.0.0"],
  ["the address before 172.16.0.0/12", "172.15.255.255"],
  ["the address after CGNAT", "100.128.0.0"],
  ["6to4 of a public address", "2002:808:808::1"],
  ["NAT64 of a public address", "64:ff9b::8.8.8.8"],
  ["an AS112 sink, which is reachable by definition", "192.175.48.1"],
];

describe("classifyAddress", () => {
  test.each(special)("calls %s special", (_row, text, name) => {
    const address = parseAddress(text);
    const result = address.ok ? classifyAddress(address.value) : undefined;
    expect(result?.kind === "special" && result.name).toContain(name);
  });

  test.each(open)("calls %s public", (_row, text) => {
    const address = parseAddress(text);
    expect(address.ok && classifyAddress(address.value)).toEqual({ kind: "public" });
  });
});
