import path from "node:path";
import { AGENT_PROFILES } from "../../policy/agent-profile-data.ts";
import { type AgentWord, parseAgentWord, parsePortMapping, type PortMapping } from "../../policy/box-words.ts";
import type { Config } from "../../policy/config-schema.ts";
import type { ImageWish, Options } from "../args.ts";
import { expandTilde } from "../workspace/git-config.ts";

/** What a configuration asks of a box beside its network. */
export type ConfiguredBox = {
  /** The agent that starts when none is named. */
  agent: AgentWord | undefined;
  limits: { memory: string | undefined; cpus: number | undefined };
  writable: readonly string[];
  /** The site's proxy for the build. */
  proxy: string | undefined;
  /** Of this project only: what the image holds beside what is remembered. */
  image: ImageWish;
};

export type MergeInput = { options: Options; config: Config; projectPath: string; home: string };

/**
 * Puts what a file asks for below what was typed: single values give way, of lists both count, and where two
 * speak of the same thing (a port of the host, a variable) the typed one does.
 */
export function mergeOptions({ options, config, projectPath, home }: MergeInput): Options {
  const { box, network } = config;
  const ports = (box?.ports ?? []).flatMap((text) => accepted(parsePortMapping(text)));
  return {
    ...options,
    ports: [...options.ports, ...ports.filter((port) => !options.ports.some((typed) => clashes(typed, port)))],
    addDirs: [...options.addDirs, ...(box?.add_dirs ?? []).map((typed) => path.resolve(projectPath, expandTilde(typed, home)))],
    // The last of one name wins.
    env: [...Object.entries(box?.env ?? {}).map(([name, value]) => `${name}=${value}`), ...options.env],
    dns: options.dns.length > 0 ? options.dns : [...(network?.dns ?? [])],
  };
}

/** Reads what only a configuration can say, and what it says about the image. `directory` is that of the file. */
export function readConfiguredBox({ config: { box, workspace, build }, home, directory }: Pick<MergeInput, "config" | "home"> & { directory: string }): ConfiguredBox {
  return {
    agent: box?.agent === undefined ? undefined : parseAgent(box.agent)[0],
    limits: { memory: box?.memory, cpus: box?.cpus },
    writable: workspace?.writable ?? [],
    proxy: build?.proxy,
    image: {
      agents: build?.agents?.flatMap(parseAgent),
      packages: build?.packages,
      base: build?.base,
      caFile: build?.ca_file === undefined ? undefined : path.resolve(directory, expandTilde(build.ca_file, home)),
    },
  };
}

/** Each part of what an image holds that was typed stays; the file says the rest. */
export function leaveTyped(typed: ImageWish, configured: ImageWish): ImageWish {
  return {
    agents: typed.agents === undefined ? configured.agents : undefined,
    packages: typed.packages === undefined ? configured.packages : undefined,
    base: typed.base === undefined ? configured.base : undefined,
    caFile: typed.caFile === undefined ? configured.caFile : undefined,
  };
}

function parseAgent(text: string): AgentWord[] {
  return accepted(parseAgentWord(text, AGENT_PROFILES.map(({ name }) => name)));
}

/** The schema has refused what cannot be parsed. */
function accepted<T>(answer: { ok: true; value: T } | { ok: false }): T[] {
  return answer.ok ? [answer.value] : [];
}

function clashes(a: PortMapping, b: PortMapping): boolean {
  return a.host === b.host && a.address === b.address && a.protocol === b.protocol;
}
