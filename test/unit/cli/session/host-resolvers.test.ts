import { expect, test } from "vitest";
import { chooseUpstreams, parseBoxResolvers, parseResolvers } from "../../../../cli/session/host-resolvers.ts";

test.each([
  { name: "takes each nameserver line", text: "search x\nnameserver 10.0.0.1\nnameserver\tfd00::1\n", expected: ["10.0.0.1", "fd00::1"] },
  { name: "writes addresses in one form", text: "nameserver FD00:0::1", expected: ["fd00::1"] },
  { name: "cuts the zone of a link-local resolver", text: "nameserver fe80::1%eth0", expected: ["fe80::1"] },
  { name: "leaves comments and nonsense out", text: "# nameserver 1.1.1.1\nnameserver here\nnameservers 2.2.2.2", expected: [] },
])("$name", ({ text, expected }) => {
  expect(parseResolvers(text)).toEqual(expected);
});

test.each([
  { name: "takes the resolvers of a box on the default network", text: "nameserver 192.168.65.7\n", expected: ["192.168.65.7"] },
  { name: "finds behind the embedded resolver whom that one asks", text: "nameserver 127.0.0.11\noptions ndots:0\n\n# ExtServers: [192.0.2.53 2001:db8::53]\n", expected: ["192.0.2.53", "2001:db8::53"] },
  { name: "takes those that are asked from the host's side too", text: "nameserver 127.0.0.11\n# ExtServers: [host(192.0.2.53)]\n", expected: ["192.0.2.53"] },
  { name: "never takes one that would be the box itself", text: "nameserver 127.0.0.11\n# ExtServers: [host(127.0.0.53) ::1]\n", expected: [] },
  { name: "finds none where the engine tells none", text: "nameserver 127.0.0.11\noptions ndots:0\n", expected: [] },
])("$name", ({ text, expected }) => {
  expect(parseBoxResolvers(text)).toEqual(expected);
});

const input = { dns: [], resolvers: ["10.0.0.1"], engine: { sameKernel: true }, firewall: true };

test.each([
  { name: "whom the user named", change: { dns: ["9.9.9.9"] }, expected: ["9.9.9.9"] },
  { name: "whom the user named, with an engine in a machine of its own too", change: { dns: ["9.9.9.9"], engine: { sameKernel: false } }, expected: ["9.9.9.9"] },
  { name: "whom the host asks", change: {}, expected: ["10.0.0.1"] },
  { name: "not whom the host asks, where the engine runs in a machine of its own", change: { engine: { sameKernel: false } }, expected: "ask-engine" },
  { name: "nobody without a firewall, where the engine sees to it", change: { firewall: false, resolvers: [] }, expected: [] },
])("the box's resolver asks $name", ({ change, expected }) => {
  expect(chooseUpstreams({ ...input, ...change })).toEqual(expected);
});

test("a start whose resolver would have nobody to ask says what to do", () => {
  expect(() => chooseUpstreams({ ...input, resolvers: [] })).toThrow(/no resolver.*--dns/);
});
