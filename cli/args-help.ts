import { optionSpecs, renderOption, type Verb } from "./args-options.ts";

type VerbHelp = { usage: string; about: string };

const verbHelp: Readonly<Record<Verb, VerbHelp>> = {
  start: { usage: "agentbox [options] [AGENT[@VERSION]] [-- AGENT_ARGS…]", about: "Start an agent for the project in this directory, in a box of its own." },
  login: { usage: "agentbox AGENT login [options]", about: "Sign an agent in; its callback port is reachable on 127.0.0.1 while it runs." },
  shell: { usage: "agentbox shell [--admin] [options] [-- COMMAND…]", about: "Open a shell in a box, or run one command there." },
  run: { usage: "agentbox run [options] -- COMMAND…", about: "Run one command in a box; works without a terminal." },
  rebuild: { usage: "agentbox --rebuild [AGENT[@VERSION]] [options]", about: "Build the image anew, with the newest agents; start nothing." },
  "ssh-init": { usage: "agentbox ssh-init", about: "Make the SSH key that boxes use; your own keys never enter a box." },
  doctor: { usage: "agentbox doctor [--engine docker|podman]", about: "Check what a box needs of this machine, with a remedy for each problem." },
  cleanup: { usage: "agentbox cleanup [--engine docker|podman]", about: "Remove what killed sessions left, superseded images, and state of projects that are gone." },
};

const helpHelp: VerbHelp = { usage: "agentbox help [COMMAND]", about: "Show this, or the options of one command." };

const environmentHelp = `Environment
  AGENTBOX_FIREWALL=1  firewall on: the box reaches the allowed names only
  AGENTBOX_FIREWALL=0  firewall off, said loudly; without the variable it is off too
  AGENTBOX_LOG=json    the steps of a start as JSON lines on stderr
  AGENTBOX_CA_FILE     as --ca-file`;

const exitHelp = `Exit codes
  the agent's own; 64 usage, 69 engine or critical service not available, 70 firewall not applied or
  not verified, 74 output not written, 77 missing capability, 78 configuration, 129/130/143 ended by
  SIGHUP/SIGINT/SIGTERM, 141 nobody reads the output any more`;

/** Renders the help of one verb, or of the whole command line. `columns` is the width to wrap at. */
export function renderHelp(topic: Verb | undefined, agents: readonly string[], columns = 100): string {
  if (topic !== undefined) return [verbHelp[topic].about, "", `Usage: ${verbHelp[topic].usage}`, "", "Options", ...renderOptions(topic, columns), ""].join("\n");
  const shown = [...Object.values(verbHelp), helpHelp];
  const usages = shown.map(({ usage }) => usage);
  const width = Math.max(...usages.map((usage) => usage.length));
  const verbLines = shown.flatMap(({ usage, about }) => renderRow(`  ${usage}`, about, { indent: width + 4, columns: width + 60 }));
  return [
    "AgentBox runs a coding agent in a container that reaches only the names its owner allowed.",
    "",
    "Usage",
    ...verbLines,
    "",
    `Agents: ${agents.join(", ")}`,
    "",
    "Options",
    ...renderOptions(undefined, columns),
    "",
    environmentHelp,
    "",
    exitHelp,
    "",
  ].join("\n");
}

function renderOptions(verb: Verb | undefined, columns: number): string[] {
  const shown = optionSpecs.filter(({ verbs }) => verb === undefined || verbs.includes(verb));
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
