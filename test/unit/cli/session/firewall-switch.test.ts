import { expect, test } from "vitest";
import { checkResolvers, decideNetwork } from "../../../../cli/session/firewall-switch.ts";

test.each([
  { name: "1 turns the firewall on, and nothing needs saying", input: { variable: "1", fullNetwork: false, entries: 3 }, expected: { firewall: true, mode: "allowlist" }, said: /^$/ },
  { name: "1 with an empty allowlist leaves no network at all", input: { variable: "1", fullNetwork: false, entries: 0 }, expected: { firewall: true, mode: "none" }, said: /no network at all/ },
  { name: "0 turns it off, loudly", input: { variable: "0", fullNetwork: false, entries: 3 }, expected: { firewall: false, mode: "full" }, said: /FIREWALL OFF/ },
  { name: "without the variable it is off, and the start says how to turn it on", input: { variable: undefined, fullNetwork: false, entries: 3 }, expected: { firewall: false, mode: "full" }, said: /FIREWALL OFF.*AGENTBOX_FIREWALL=1/ },
  { name: "--full-network wins over 1, loudly", input: { variable: "1", fullNetwork: true, entries: 3 }, expected: { firewall: false, mode: "full" }, said: /overrides AGENTBOX_FIREWALL=1.*FIREWALL OFF/ },
])("$name", ({ input, expected, said }) => {
  const decision = decideNetwork(input);
  expect(decision).toMatchObject(expected);
  expect(decision.notices.join("\n")).toMatch(said);
});

test.each(["", "yes", "true", "01", " 1", "on"])("the value %j may be meant as either, and is refused", (variable) => {
  expect(() => decideNetwork({ variable, fullNetwork: false, entries: 1 })).toThrow(/expected 1 .* or 0/);
});

test.each(["127.0.0.1", "127.0.0.53", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1"])("refuses the resolver %s, which the box would look for in itself", (address) => {
  expect(checkResolvers([address])).toMatchObject([{ what: expect.stringContaining(`--dns ${address} is the box itself`) }]);
});

test.each(["9.9.9.9", "10.0.0.1", "fd00::53", "169.254.1.1"])("takes the resolver %s", (address) => {
  expect(checkResolvers([address])).toEqual([]);
});
