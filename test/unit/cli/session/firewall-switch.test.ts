import { expect, test } from "vitest";
import { checkResolvers, decideNetwork, type SwitchInput } from "../../../../cli/session/firewall-switch.ts";

const file = ".agentbox/config.toml: mode";

type Row = { name: string; input: Partial<SwitchInput>; expected: { firewall: boolean; mode: string; why: string }; said: RegExp };

const full = { configured: { mode: "full", why: file } } as const;
const none = { configured: { mode: "none", why: file } } as const;
const listed = { configured: { mode: "allowlist", why: file } } as const;
const off = (why: string) => ({ firewall: false, mode: "full", why });
const on = (why: string) => ({ firewall: true, mode: "allowlist", why });
const closed = (why: string) => ({ firewall: true, mode: "none", why });

const rows: Row[] = [
  { name: "nobody asks: off, and the start says how to turn it on", input: {}, expected: off("nothing asks for the firewall"), said: /^FIREWALL OFF.*agentbox setup.*AGENTBOX_FIREWALL=1/ },
  { name: "a [network] table turns it on", input: listed, expected: on(file), said: /^$/ },
  { name: "mode none is no network", input: none, expected: closed(file), said: /no network at all/ },
  { name: "mode full is off, loudly", input: full, expected: off(file), said: /mode: FIREWALL OFF/ },
  { name: "an allowlist that opens nothing is no network", input: { ...listed, opensNothing: true }, expected: closed(file), said: /the allowlist is empty/ },
  { name: "1 turns it on", input: { variable: "1" }, expected: on("AGENTBOX_FIREWALL=1"), said: /^$/ },
  { name: "1 with a list that opens nothing is no network", input: { variable: "1", opensNothing: true }, expected: closed("AGENTBOX_FIREWALL=1"), said: /the allowlist is empty/ },
  { name: "1 with mode none stays none", input: { variable: "1", ...none }, expected: closed(file), said: /no network at all/ },
  { name: "1 with mode full is the allowlist, and says so", input: { variable: "1", ...full }, expected: on("AGENTBOX_FIREWALL=1"), said: /turns the firewall on although/ },
  { name: "1 with an allowlist is that", input: { variable: "1", ...listed }, expected: on("AGENTBOX_FIREWALL=1"), said: /^$/ },
  { name: "0 turns it off, loudly", input: { variable: "0" }, expected: off("AGENTBOX_FIREWALL=0"), said: /AGENTBOX_FIREWALL=0: FIREWALL OFF/ },
  { name: "0 turns a configured allowlist off, loudly", input: { variable: "0", ...listed }, expected: off("AGENTBOX_FIREWALL=0"), said: /FIREWALL OFF/ },
  { name: "0 turns mode none off, loudly", input: { variable: "0", ...none }, expected: off("AGENTBOX_FIREWALL=0"), said: /FIREWALL OFF/ },
  { name: "--full-network wins over 1, loudly", input: { variable: "1", fullNetwork: true }, expected: off("--full-network"), said: /overrides AGENTBOX_FIREWALL=1: FIREWALL OFF/ },
  { name: "--full-network wins over the configuration, loudly", input: { fullNetwork: true, ...none }, expected: off("--full-network"), said: /FIREWALL OFF/ },
  { name: "required turns it on where nobody asks", input: { required: true }, expected: on("required = true in the user's own file"), said: /^$/ },
  { name: "required with an allowlist is that", input: { required: true, ...listed }, expected: on(file), said: /^$/ },
  { name: "required with mode none is none", input: { required: true, ...none }, expected: closed(file), said: /no network at all/ },
  { name: "required takes 1", input: { required: true, variable: "1", ...full }, expected: on("AGENTBOX_FIREWALL=1"), said: /although/ },
];

const base: SwitchInput = { variable: undefined, fullNetwork: false, configured: undefined, required: false, opensNothing: false };

test.each(rows)("$name", ({ input, expected, said }) => {
  const decision = decideNetwork({ ...base, ...input });
  expect(decision).toMatchObject(expected);
  expect(decision.notices.join("\n")).toMatch(said);
});

const openings: { name: string; input: Partial<SwitchInput>; named: string }[] = [
  { name: "AGENTBOX_FIREWALL=0", input: { variable: "0" }, named: "AGENTBOX_FIREWALL=0 asks" },
  { name: "AGENTBOX_FIREWALL=0 although the project is closed", input: { variable: "0", ...none }, named: "AGENTBOX_FIREWALL=0 asks" },
  { name: "--full-network", input: { fullNetwork: true }, named: "--full-network asks" },
  { name: "--full-network beside 1", input: { fullNetwork: true, variable: "1" }, named: "--full-network asks" },
  { name: "mode full of the project's file", input: full, named: `${file} asks` },
];

test.each(openings)("required = true refuses $name, which is taken without it", ({ input, named }) => {
  expect(decideNetwork({ ...base, ...input })).toMatchObject({ firewall: false });
  expect(() => decideNetwork({ ...base, ...input, required: true })).toThrow(named);
});

test.each(["", "yes", "true", "01", " 1", "on"])("the value %j may be meant as either, and is refused", (variable) => {
  expect(() => decideNetwork({ ...base, variable })).toThrow(/expected 1 .* or 0/);
});

test.each(["127.0.0.1", "127.0.0.53", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1"])("refuses the resolver %s, which the box would look for in itself", (address) => {
  expect(checkResolvers([address])).toMatchObject([{ what: expect.stringContaining(`--dns ${address} is the box itself`) }]);
});

test.each(["9.9.9.9", "10.0.0.1", "fd00::53", "169.254.1.1"])("takes the resolver %s", (address) => {
  expect(checkResolvers([address])).toEqual([]);
});
