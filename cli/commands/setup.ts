import { existsSync } from "node:fs";
import { AGENT_PROFILES } from "../../policy/agent-profile-data.ts";
import { DEFAULT_AGENT } from "../../policy/agent-profile.ts";
import { parseConfig } from "../../policy/config-file.ts";
import { TOPOLOGIES } from "../../policy/config-schema.ts";
import { renderConfigTemplate, type TemplateChoices } from "../../policy/config-template.ts";
import { parseEntry } from "../../policy/entry.ts";
import { UsageError } from "../../policy/errors.ts";
import { type Parsed, quote } from "../../policy/parsed.ts";
import type { Preset } from "../../policy/preset.ts";
import { loadPublicSuffixTest, type PublicSuffixTest, refuseOpenWildcard } from "../../policy/wildcard-check.ts";
import { parseAllowedHost, type SetupWish } from "../args-policy.ts";
import { readConfigText } from "../config/config-text.ts";
import { describeConfigFile, writeConfigFile } from "../config/edit-config.ts";
import { withPolicyLock } from "../config/exclusive.ts";
import { readPresets } from "../config/preset-files.ts";
import { writeTrusted } from "../config/trust-store.ts";
import type { Edge } from "../edge.ts";
import type { SetupFacts } from "../ui/setup-state.ts";
import { renderPresetHosts, requirePreset } from "./policy-show.ts";
import { findProject } from "./project-policy.ts";

/** Writes the configuration file of the project, or the user's own: by options, or on a terminal by asking. Returns the exit code. */
export async function setUp(edge: Edge, wish: SetupWish): Promise<number> {
  const { host, say } = edge;
  const presets = await readPresets(host.root);
  const project = findProject(host);
  const target = describeConfigFile(host, project, wish.user);
  const existing = readConfigText(target)?.text;
  const asks = host.terminal && isEmpty(wish);
  if (existing !== undefined && !wish.force && !asks) {
    throw new UsageError({ what: `${target.name} is there already`, expected: "a place without a file", fix: "add to it by `agentbox policy allow --always` or `agentbox policy apply`, edit it, or replace it by --force" });
  }
  const choices = asks ? await askChoices({ file: target.name, existing, presets, env: host.env }) : readChoices(wish, presets);
  if (choices === undefined) {
    say("nothing was written");
    return 0;
  }
  const text = renderConfigTemplate(choices);
  parseConfig({ file: target.name, text, presets: presets.map(({ id }) => id), isPublicSuffix: await loadPublicSuffixTest([text]) });
  await withPolicyLock(host.agentboxHome, async () => {
    await writeConfigFile(target, { before: existing, text });
    // Who answered the questions knows what this text says, and nothing of one that an agent put in its place.
    if (!wish.user) await writeTrusted(host.agentboxHome, project, [{ name: target.name, text }]);
  });
  await edge.print(`${target.name} ${existing === undefined ? "written" : "replaced"}.\n`);
  if (wish.user && existsSync(describeConfigFile(host, project, false).path)) say("this project has a file of its own, which counts here");
  await edge.print("Start with: agentbox\nSee what it may reach: agentbox policy show\n");
  return 0;
}

type Asking = Pick<SetupFacts, "file" | "existing"> & { presets: readonly Preset[]; env: Edge["host"]["env"] };

async function askChoices({ file, existing, presets, env }: Asking): Promise<TemplateChoices | undefined> {
  const isPublicSuffix = await loadPublicSuffixTest(["*"]);
  const { openSetupScreen } = await import("../ui/setup-screen.tsx");
  const facts: SetupFacts = {
    agents: AGENT_PROFILES.filter((profile) => profile.package !== null).map(({ name, title }) => ({ id: name, title })),
    presets: presets.map((preset) => ({ id: preset.id, title: preset.title, description: preset.description, hosts: renderPresetHosts(preset) })),
    file,
    existing,
    checkHost: (text) => checkHost(text, isPublicSuffix),
    render: renderConfigTemplate,
  };
  return await openSetupScreen(facts, env);
}

/** A host as `policy allow` takes it, and no wildcard that the written file would be refused for. */
function checkHost(text: string, isPublicSuffix: PublicSuffixTest): Parsed<string> {
  const host = parseAllowedHost(text);
  const entry = host.ok ? parseEntry(host.value, "list") : host;
  const pattern = entry.ok && entry.value.target.kind === "pattern" ? entry.value.target.pattern : undefined;
  return (pattern === undefined ? undefined : refuseOpenWildcard(pattern, isPublicSuffix)) ?? host;
}

function readChoices({ agent = DEFAULT_AGENT, presets, allow, topology }: SetupWish, known: readonly Preset[]): TemplateChoices {
  const chosen = TOPOLOGIES.find((one) => one === topology);
  if (topology !== undefined && chosen === undefined) throw new UsageError({ what: `--topology ${quote(topology)} is none`, expected: TOPOLOGIES.join(" or ") });
  return { agent, presets: presets.map((id) => requirePreset(known, id).id), allowHosts: allow, topology: chosen };
}

function isEmpty({ agent, presets, allow, topology }: SetupWish): boolean {
  return agent === undefined && presets.length === 0 && allow.length === 0 && topology === undefined;
}

