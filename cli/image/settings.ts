import { readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { ConfigError } from "../../policy/errors.ts";
import type { ImageWish } from "../args.ts";
import type { AgentWord } from "../args-values.ts";
import { makePrivateDirectory } from "../session/home.ts";
import { writeWhole } from "../session/whole-file.ts";

/** The base that the image is built on unless another one is asked for. */
export const defaultBase = "node:24-bookworm-slim";

/** What the image holds, remembered from start to start in `~/.agentbox/image.json`. */
const settingsSchema = z.strictObject({
  version: z.literal(1),
  /** Agents in the image, as typed: `claude`, `codex@1.2.3`. */
  agents: z.array(z.string()),
  packages: z.array(z.string()),
  base: z.string(),
  caFile: z.string().nullable(),
  /** Changes with each `--rebuild`, so that the agents are fetched anew and nothing else is. */
  epoch: z.string(),
});

export type ImageSettings = z.infer<typeof settingsSchema>;

/** Reads the remembered settings; undefined when nothing is remembered yet. Throws ConfigError for a broken file. */
export async function readImageSettings(agentboxHome: string): Promise<ImageSettings | undefined> {
  const file = findFile(agentboxHome);
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw new ConfigError({ what: `cannot be read: ${error.message}`, place: { file } });
  });
  if (text === undefined) return undefined;
  const answer = settingsSchema.safeParse(parseJson(text));
  if (answer.success) return answer.data;
  throw new ConfigError({ what: "is not what agentbox wrote there", expected: "the settings of the image", fix: "delete the file; agents and packages must then be named again", place: { file } });
}

/** Remembers settings for the next start. */
export async function writeImageSettings(agentboxHome: string, settings: ImageSettings): Promise<void> {
  await makePrivateDirectory(agentboxHome);
  await writeWhole(findFile(agentboxHome), `${JSON.stringify(settings, undefined, 2)}\n`, 0o600);
}

export type SettingsChange = {
  wish: ImageWish;
  /** The agent that starts; it joins the image when it is not in it. */
  agent: AgentWord | undefined;
  /** Set by `--rebuild`. */
  epoch: string | undefined;
};

/** Applies what a command line asks for to the remembered settings. */
export function changeImageSettings(remembered: ImageSettings | undefined, { wish, agent, epoch }: SettingsChange): ImageSettings {
  const first = agent === undefined ? ["claude"] : [];
  const base: ImageSettings = remembered ?? { version: 1, agents: first, packages: [], base: defaultBase, caFile: null, epoch: "0" };
  const agents = wish.agents === undefined ? base.agents : wish.agents.map(renderAgentWord);
  return {
    version: 1,
    agents: agent === undefined ? agents : addAgent(agents, agent, epoch !== undefined),
    packages: wish.packages ?? base.packages,
    base: wish.base ?? base.base,
    caFile: wish.caFile === undefined ? base.caFile : wish.caFile,
    epoch: epoch ?? base.epoch,
  };
}

/** A version pins an agent until `--rebuild AGENT` names it without one. */
function addAgent(agents: readonly string[], agent: AgentWord, unpin: boolean): string[] {
  const word = renderAgentWord(agent);
  const present = agents.findIndex((candidate) => candidate.split("@")[0] === agent.name);
  if (present === -1) return [...agents, word];
  return agent.version === undefined && !unpin ? [...agents] : agents.with(present, word);
}

function renderAgentWord({ name, version }: AgentWord): string {
  return version === undefined ? name : `${name}@${version}`;
}

function findFile(agentboxHome: string): string {
  return path.join(agentboxHome, "image.json");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
