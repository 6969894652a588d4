import { expect, test } from "vitest";
import type { ImageWish } from "../../../../cli/args.ts";
import type { AgentWord } from "../../../../cli/args-values.ts";
import { changeImageSettings, type ImageSettings } from "../../../../cli/image/settings.ts";

const nothing: ImageWish = { agents: undefined, packages: undefined, base: undefined, caFile: undefined };
const remembered: ImageSettings = { version: 1, agents: ["claude", "codex@1.0.0"], packages: ["jq"], base: "local", caFile: "/ca.pem", epoch: "1" };
const codex: AgentWord = { name: "codex", version: undefined };

function change(wish: Partial<ImageWish>, agent?: AgentWord, epoch?: string): ImageSettings {
  return changeImageSettings(remembered, { wish: { ...nothing, ...wish }, agent, epoch });
}

test("the first image holds the agent that starts", () => {
  expect(changeImageSettings(undefined, { wish: nothing, agent: codex, epoch: undefined }).agents).toEqual(["codex"]);
});

test("the first image of a shell holds claude", () => {
  expect(changeImageSettings(undefined, { wish: nothing, agent: undefined, epoch: undefined }).agents).toEqual(["claude"]);
});

test.each([
  { name: "nothing asked for changes nothing", got: change({}), expected: remembered },
  { name: "an agent that is not in the image joins it", got: change({}, { name: "gemini", version: undefined }).agents, expected: ["claude", "codex@1.0.0", "gemini"] },
  { name: "an agent that starts keeps its pin", got: change({}, codex).agents, expected: ["claude", "codex@1.0.0"] },
  { name: "a version with the agent moves the pin", got: change({}, { name: "codex", version: "2.0.0" }).agents, expected: ["claude", "codex@2.0.0"] },
  { name: "a rebuild that names the agent without a version unpins it", got: change({}, codex, "2").agents, expected: ["claude", "codex"] },
  { name: "a rebuild that names none keeps the pin", got: change({}, undefined, "2").agents, expected: ["claude", "codex@1.0.0"] },
  { name: "a list of agents replaces the remembered one", got: change({ agents: [] }).agents, expected: [] },
  { name: "no packages drops the remembered ones", got: change({ packages: [] }).packages, expected: [] },
  { name: "no certificates drops the remembered file", got: change({ caFile: null }).caFile, expected: null },
  { name: "another base is remembered", got: change({ base: "debian:12" }).base, expected: "debian:12" },
  { name: "a start keeps the epoch of the last rebuild", got: change({}).epoch, expected: "1" },
])("$name", ({ got, expected }) => {
  expect(got).toEqual(expected);
});
