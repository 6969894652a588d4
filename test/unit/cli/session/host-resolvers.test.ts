import { expect, test } from "vitest";
import { parseResolvers } from "../../../../cli/session/host-resolvers.ts";

test.each([
  { name: "takes each nameserver line", text: "search x\nnameserver 10.0.0.1\nnameserver\tfd00::1\n", expected: ["10.0.0.1", "fd00::1"] },
  { name: "writes addresses in one form", text: "nameserver FD00:0::1", expected: ["fd00::1"] },
  { name: "cuts the zone of a link-local resolver", text: "nameserver fe80::1%eth0", expected: ["fe80::1"] },
  { name: "leaves comments and nonsense out", text: "# nameserver 1.1.1.1\nnameserver here\nnameservers 2.2.2.2", expected: [] },
])("$name", ({ text, expected }) => {
  expect(parseResolvers(text)).toEqual(expected);
});
