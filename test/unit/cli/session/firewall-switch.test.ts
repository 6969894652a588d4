import { expect, test } from "vitest";
import { decideNetwork } from "../../../../cli/session/firewall-switch.ts";

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
