import { DEFAULT_AGENT } from "./agent-profile.ts";
import type { TOPOLOGIES } from "./config-schema.ts";

/** What `agentbox setup` asks for. What is left out or empty stands in the file as a comment. */
export type TemplateChoices = {
  agent?: string | undefined;
  presets?: readonly string[] | undefined;
  allowHosts?: readonly string[] | undefined;
  topology?: (typeof TOPOLOGIES)[number] | undefined;
  /** Where editors find `agentbox.schema.json`, a URL or a path from the file; the first line then says so. */
  schema?: string | undefined;
};

/** Renders a configuration file with the choices set and the other keys explained in comments. `parseConfig` reads the same choices from it. */
export function renderConfigTemplate({ agent, presets = [], allowHosts = [], topology, schema }: TemplateChoices): string {
  const lines = [
    // Editors complete and check the file by this; a line end in it would end the comment.
    ...(schema === undefined ? [] : [`#:schema ${schema.replaceAll(/\p{Cc}/gu, "")}`, ""]),
    "# What a box of this project may reach, and how its agent runs.",
    "# `agentbox policy show` prints the whole list with the reason for each host.",
    "",
    "[network]",
    "# Named sets of hosts: `agentbox policy presets` lists them.",
    renderKey("presets", presets, '["rust"]'),
    "",
    "# Further hosts. Port 443 unless ports are written; *.host includes the host itself.",
    renderHosts(allowHosts),
    "",
    "# Hosts that stay closed, whatever allows them.",
    '# block_hosts = ["*.example.com"]',
    "",
    "# container: firewall and agent in one container. sidecar: the firewall in a container of its own.",
    renderKey("topology", topology, '"sidecar"'),
    "",
    "[box]",
    "# The agent that starts when none is named.",
    renderKey("agent", agent, JSON.stringify(DEFAULT_AGENT)),
    "",
    "# Ports to publish on this machine, further directories, variables, limits.",
    '# ports = ["3000"]',
    '# add_dirs = ["../shared"]',
    '# env = { LOG_LEVEL = "debug" }',
    '# memory = "4g"',
    "# cpus = 2",
  ];
  return `${lines.join("\n")}\n`;
}

function renderKey(key: string, value: string | readonly string[] | undefined, example: string): string {
  if (value === undefined || value.length === 0) return `# ${key} = ${example}`;
  return `${key} = ${typeof value === "string" ? quoteText(value) : `[${value.map(quoteText).join(", ")}]`}`;
}

function renderHosts(hosts: readonly string[]): string {
  if (hosts.length === 0) return '# allow_hosts = ["registry.example.com", "git.example.com:22,443"]';
  return ["allow_hosts = [", ...hosts.map((host) => `  ${quoteText(host)},`), "]"].join("\n");
}

// A JSON string is a TOML string but for DEL, which TOML wants escaped.
function quoteText(text: string): string {
  return JSON.stringify(text).replaceAll("\u007f", String.raw`\u007f`);
}
