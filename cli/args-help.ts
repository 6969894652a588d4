import { optionSpecs, renderOption, type Verb, verbs } from "./args-options.ts";
import { isGroup, type Group, type Topic } from "./args-verb.ts";

type VerbHelp = { usage: string; about: string };

const verbHelp: Readonly<Record<Verb, VerbHelp>> = {
  start: { usage: "agentbox [options] [AGENT[@VERSION]] [-- AGENT_ARGS…]", about: "Start an agent for the project in this directory, in a box of its own." },
  login: { usage: "agentbox AGENT login [options]", about: "Sign an agent in; its callback port is reachable on 127.0.0.1 while it runs." },
  shell: { usage: "agentbox shell [--admin] [options] [-- COMMAND…]", about: "Open a shell in a box, or run one command there." },
  run: { usage: "agentbox run [options] -- COMMAND…", about: "Run one command in a box; works without a terminal." },
  setup: { usage: "agentbox setup [options]", about: "Write the configuration file: asks on a terminal, or takes everything from options." },
  "policy show": { usage: "agentbox policy show [--json]", about: "Show all that a box of this project may reach, and why." },
  "policy explain": { usage: "agentbox policy explain HOST[:PORT]", about: "Say whether a box may reach a host, by which rule, and what would change it." },
  "policy check": { usage: "agentbox policy check", about: "Look for mistakes and doubtful entries in the configuration." },
  "policy diff": { usage: "agentbox policy diff", about: "Compare the configuration with what running boxes enforce, and with what you trusted." },
  "policy presets": { usage: "agentbox policy presets [PRESET]", about: "List the presets, or the hosts of one." },
  "policy apply": { usage: "agentbox policy apply PRESET", about: "Add a preset to the configuration file and to the running boxes." },
  "policy allow": { usage: "agentbox policy allow HOST[:PORT]… [--once|--always]", about: "Let the running boxes of this project reach a host, at once." },
  "policy deny": { usage: "agentbox policy deny HOST… [--once|--always]", about: "Take a host from the running boxes of this project, and cut its connections." },
  "policy trust": { usage: "agentbox policy trust", about: "Agree to the configuration of this project as it is now." },
  "policy suggest": { usage: "agentbox policy suggest [--json]", about: "Print the smallest list that the last session really used." },
  blocked: { usage: "agentbox blocked [--all] [--json]", about: "Show what the running or last session was refused, and what would allow it." },
  logs: { usage: "agentbox logs [--follow] [--json]", about: "Show every decision about a name or a connection of a session." },
  "logs stats": { usage: "agentbox logs stats [SESSION] [--json]", about: "Count by host what a session was allowed and refused, and the bytes that passed." },
  "audit show": { usage: "agentbox audit show [SESSION] [--task TASK] [--json] [--follow]", about: "Show what the file guard was asked, decided and did, and the head of its log." },
  "audit verify": { usage: "agentbox audit verify [SESSION|FILE] [--head HASH]", about: "Say up to which line an audit log proves itself, and what breaks it; exit 1 where something does." },
  "audit summary": { usage: "agentbox audit summary [SESSION] [--task TASK] [--json]", about: "Tell what each task read, changed, asked and was refused." },
  "confirm list": { usage: "agentbox confirm list [--json]", about: "Show what the file guard asks and nobody has answered yet." },
  "confirm approve": { usage: "agentbox confirm approve ID [--session|--always]", about: "Say yes to what the file guard asks, after it was shown on the terminal." },
  "confirm deny": { usage: "agentbox confirm deny ID", about: "Say no to what the file guard asks." },
  mcp: { usage: "agentbox mcp [--session NAME] [--grant DIR:rw]… [--socket PATH]", about: "Serve the file guard to an MCP client: files of granted folders, judged, asked about where it is risky, and written down." },
  preflight: { usage: "agentbox preflight [--mode MODE] -- COMMAND…", about: "Say which hosts and sockets a command obviously needs, and which are refused; run nothing." },
  "hook claude": { usage: "agentbox hook claude", about: "Answer a PreToolUse hook of Claude Code, read from stdin: refuse early what the policy refuses." },
  proxy: { usage: "agentbox proxy [--config FILE] [--log DIR] [--approve]", about: "Run the proxy for programs of this machine, until Ctrl-C; prints the variables that lead them to it." },
  "proxy ctl": { usage: "agentbox proxy ctl WORD [--json]", about: "Ask or tell the running proxy: health, config, patterns, blocked, mode MODE, reload, events, allow HOST…" },
  "proxy seatbelt-profile": { usage: "agentbox proxy seatbelt-profile [--config FILE]", about: "Print a sandbox profile for macOS that leaves the proxy as the only way out." },
  rebuild: { usage: "agentbox --rebuild [AGENT[@VERSION]] [options]", about: "Build the image anew, with the newest agents; start nothing." },
  "ssh-init": { usage: "agentbox ssh-init", about: "Make the SSH key that boxes use; your own keys never enter a box." },
  doctor: { usage: "agentbox doctor [--engine docker|podman]", about: "Check what a box needs of this machine, with a remedy for each problem." },
  cleanup: { usage: "agentbox cleanup [--engine docker|podman]", about: "Remove what killed sessions left, superseded images, and state of projects that are gone." },
};

const groupAbout: Readonly<Record<Group, string>> = {
  policy: "What boxes of this project may reach.",
  audit: "What the file guard was asked, decided and did.",
  confirm: "What the file guard asks where it has no terminal.",
  hook: "Answers for the hooks of agents.",
  proxy: "The proxy that judges names.",
};

const helpHelp: VerbHelp = { usage: "agentbox help [COMMAND]", about: "Show this, or the options of one command." };

const MIN_TEXT_COLUMNS = 40;

const environmentHelp = `Environment
  AGENTBOX_FIREWALL=1  firewall on: the box reaches the allowed names only
  AGENTBOX_FIREWALL=0  firewall off, said loudly; without the variable it is off too
  AGENTBOX_LOG=json    the steps of a start as JSON lines on stderr
  AGENTBOX_CA_FILE     as --ca-file`;

const exitHelp =
  "the agent's own; 1 refused (preflight), broken (audit verify), not answered (confirm) or degraded (proxy ctl health), 64 usage, 69 engine or critical service not available, 70 firewall not applied or not verified, 74 output not written, 77 missing capability, 78 configuration, 129/130/143 ended by SIGHUP/SIGINT/SIGTERM, 141 nobody reads the output any more";

/** Renders the help of one verb, or of the whole command line. `columns` is the width to wrap at. */
export function renderHelp(topic: Topic | undefined, agents: readonly string[], columns = 100): string {
  if (isGroup(topic)) {
    const own = verbs.find((verb) => verb === topic);
    const options = own === undefined ? [] : ["", `Options of agentbox ${own}`, ...renderOptions(own, columns)];
    return [groupAbout[topic], "", "Usage", ...renderVerbs(listGroup(topic), columns), ...options, "", `Each has a help of its own: agentbox help ${topic} WORD`, ""].join("\n");
  }
  if (topic !== undefined) return [verbHelp[topic].about, "", `Usage: ${verbHelp[topic].usage}`, "", "Options", ...renderOptions(topic, columns), ""].join("\n");
  return [
    "AgentBox runs a coding agent in a container that reaches only the names its owner allowed.",
    "",
    "Usage",
    ...renderVerbs([...Object.values(verbHelp), helpHelp], columns),
    "",
    `Agents: ${agents.join(", ")}`,
    "",
    "Options",
    ...renderOptions(undefined, columns),
    "",
    environmentHelp,
    "",
    "Exit codes",
    ...renderRow("", exitHelp, { indent: 2, columns }),
    "",
  ].join("\n");
}

function listGroup(group: Group): VerbHelp[] {
  return verbs.filter((verb) => verb === group || verb.startsWith(`${group} `)).map((verb) => verbHelp[verb]);
}

/** In two columns where the second is wide enough to be read, else one below the other. */
function renderVerbs(shown: readonly VerbHelp[], columns: number): string[] {
  const indent = Math.max(...shown.map(({ usage }) => usage.length)) + 4;
  if (columns - indent >= MIN_TEXT_COLUMNS) return shown.flatMap(({ usage, about }) => renderRow(`  ${usage}`, about, { indent, columns }));
  return shown.flatMap(({ usage, about }) => [`  ${usage}`, ...renderRow("", about, { indent: 6, columns })]);
}

function renderOptions(verb: Verb | undefined, columns: number): string[] {
  const shown = optionSpecs.filter((spec) => verb === undefined || spec.verbs.includes(verb));
  const indent = Math.max(...shown.map((spec) => renderOption(spec).length)) + 4;
  return shown.flatMap((spec) => renderRow(`  ${renderOption(spec)}`, spec.help, { indent, columns }));
}

/** One term and its text, wrapped into a column of its own. */
function renderRow(term: string, text: string, { indent, columns }: { indent: number; columns: number }): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && indent + line.length + 1 + word.length > columns) {
      lines.push(line);
      line = "";
    }
    line = line === "" ? word : `${line} ${word}`;
  }
  lines.push(line);
  return lines.map((content, index) => (index === 0 ? term.padEnd(indent) : " ".repeat(indent)) + content);
}
