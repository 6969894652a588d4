import fc from "fast-check";
import { expect, test } from "vitest";
import { parseHostAddress, parsePortMapping } from "../../../cli/args-values.ts";
import { renderPort } from "../../../cli/engine/container-argv.ts";

const port = fc.integer({ min: 1, max: 65_535 });
const address = fc.oneof(fc.ipV4(), fc.constantFrom("::1", "fd00::5", "2001:db8::1"));

test("a port mapping that is rendered and parsed again is the same", () => {
  fc.assert(
    fc.property(address, port, port, fc.constantFrom("tcp", "udp"), (host, outside, inside, protocol) => {
      const mapping = { address: host, host: outside, container: inside, protocol } as const;
      expect(parsePortMapping(renderPort(mapping))).toEqual({ ok: true, value: mapping });
    }),
  );
});

test("no text makes the port parser throw, and what it takes is in range", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9:.[\]/a-f-]*$/)), (text) => {
      const answer = parsePortMapping(text);
      if (!answer.ok) return;
      expect(answer.value.host).toBeGreaterThan(0);
      expect(answer.value.container).toBeLessThan(65_536);
    }),
  );
});

test.each([
  { name: "an IPv6 address in brackets", text: "db:[fd00::5]", address: "fd00::5" },
  { name: "an IPv6 address without them", text: "db:fd00::5", address: "fd00::5" },
  { name: "the engine's word for the host", text: "host.docker.internal:host-gateway", address: "host-gateway" },
])("a hosts line takes $name", ({ text, address: expected }) => {
  expect(parseHostAddress(text)).toMatchObject({ ok: true, value: { address: expected } });
});
