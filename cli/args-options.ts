/** The verbs about what a box may reach. */
const policyVerbs = ["policy show", "policy explain", "policy check", "policy diff", "policy presets", "policy apply", "policy allow", "policy deny", "policy trust", "policy suggest"] as const;
export type PolicyVerb = (typeof policyVerbs)[number];

/** The verbs of the command line, some of two words. `start` is what runs when none is written; `rebuild` is written `--rebuild`. */
export const verbs = ["start", "login", "shell", "run", "setup", ...policyVerbs, "blocked", "logs", "logs stats", "audit show", "audit verify", "audit summary", "confirm list", "confirm approve", "confirm deny", "mcp", "preflight", "hook claude", "proxy", "proxy ctl", "proxy seatbelt-profile", "rebuild", "ssh-init", "doctor", "cleanup"] as const;
export type Verb = (typeof verbs)[number];

/** One option. Without `value` it is a switch; `repeat` allows it several times. */
export type OptionSpec = {
  name: string;
  short?: string;
  value?: string;
  repeat?: boolean;
  verbs: readonly Verb[];
  help: string;
};

/** The verbs that start a box. */
export const boxVerbs: readonly Verb[] = ["start", "login", "shell", "run"];
const images: readonly Verb[] = [...boxVerbs, "rebuild"];
const live: readonly Verb[] = ["policy allow", "policy deny"];
const asked: readonly Verb[] = ["policy show", "policy explain", "policy check", "policy suggest", "blocked", "logs", "logs stats", "audit show", "audit summary", "confirm list", "preflight", "proxy ctl"];

/** Every option, in the order in which help lists them. */
export const optionSpecs: readonly OptionSpec[] = [
  { name: "port", short: "p", value: "PORT", repeat: true, verbs: boxVerbs, help: "publish a port of the box: PORT, HOST:CONTAINER or ADDRESS:HOST:CONTAINER, with /udp for UDP; on 127.0.0.1 unless an address is written" },
  { name: "add-dir", value: "DIR", repeat: true, verbs: boxVerbs, help: "mount another directory, writable, at its own path" },
  { name: "yes-secrets", verbs: boxVerbs, help: "let --add-dir take a directory that usually holds secrets" },
  { name: "env", short: "e", value: "KEY[=VALUE]", repeat: true, verbs: boxVerbs, help: "set a variable for the agent; without a value, the host's" },
  { name: "ignore-dot-env", verbs: boxVerbs, help: "do not read the project's .env" },
  { name: "dry-run", verbs: boxVerbs, help: "show the allowlist, mounts and engine command, and start nothing" },
  { name: "full-network", verbs: boxVerbs, help: "no firewall for this start, whatever AGENTBOX_FIREWALL says" },
  { name: "enforcement", value: "name|address", verbs: boxVerbs, help: "what the firewall decides by: the names that the web tells, or addresses alone" },
  { name: "batch", verbs: boxVerbs, help: "ask nothing and draw nothing, as without a terminal; what agentbox-run adds" },
  { name: "admin", verbs: ["shell"], help: "as root, without capabilities while the firewall is on" },
  { name: "engine", value: "docker|podman", verbs: [...images, "doctor", "cleanup", ...live, "policy diff", "policy apply"], help: "the container engine; found by itself otherwise" },
  { name: "dns", value: "ADDRESS", repeat: true, verbs: boxVerbs, help: "a resolver for the box, instead of the host's" },
  { name: "add-host", value: "HOST:IP", repeat: true, verbs: boxVerbs, help: "a line for the box's hosts file" },
  { name: "network", value: "NAME", verbs: boxVerbs, help: "a bridge network of the engine to join" },
  { name: "agents", value: "LIST", verbs: images, help: 'agents in the image, such as "claude codex@1.2.3", or none (remembered)' },
  { name: "package", value: "NAME", repeat: true, verbs: images, help: "a further Debian package for the image, or none to drop them (remembered)" },
  { name: "base", value: "local|IMAGE", verbs: images, help: "the image to build on; local makes one with debootstrap (remembered)" },
  { name: "ca-file", value: "FILE", verbs: images, help: "certificates of a site's own authority, for build and box, or none (remembered)" },
  { name: "topology", value: "container|sidecar", verbs: [...boxVerbs, "setup"], help: "one container, or one for the firewall and one for the agent" },
  { name: "agent", value: "NAME", verbs: ["setup", "policy show", "policy explain", "policy check", "preflight"], help: "the agent to do it for, instead of the configured one" },
  { name: "preset", value: "ID", repeat: true, verbs: ["setup"], help: "add a preset; `agentbox policy presets` lists them" },
  { name: "allow", value: "HOST[:PORT]", repeat: true, verbs: ["setup"], help: "add a host" },
  { name: "user", verbs: ["setup"], help: "write ~/.agentbox/config.toml, for projects that have none" },
  { name: "force", verbs: ["setup"], help: "replace a file that is there" },
  { name: "once", verbs: live, help: "for one minute" },
  { name: "session", verbs: live, help: "until the running boxes of this project end; what happens without an option" },
  { name: "always", verbs: live, help: "for the running boxes, and in the configuration file from now on" },
  { name: "session", verbs: ["confirm approve"], help: "also for whatever the same rule asks again in this session" },
  { name: "always", verbs: ["confirm approve"], help: "for this rule from now on, as long as it is written so; not for what the guard asks by itself" },
  { name: "all", verbs: ["blocked"], help: "telemetry too, and what the box asked itself" },
  { name: "follow", short: "f", verbs: ["logs", "audit show"], help: "go on with what comes" },
  { name: "session", value: "ID", verbs: ["blocked", "logs", "logs stats", "policy suggest"], help: "of this session, instead of the newest one of this project; proxy: the one without a box (logs)" },
  { name: "session", value: "NAME", verbs: ["mcp"], help: "the session's name, of its log and its questions; a new one for each start otherwise" },
  { name: "grant", value: "DIR:LETTERS", repeat: true, verbs: ["mcp"], help: "open a folder: r to read and list, w to write and create, d to delete, move and rename; instead of the grants of [sandbox]" },
  { name: "socket", value: "PATH", verbs: ["mcp"], help: "serve on a unix socket, for a box, instead of stdin and stdout" },
  { name: "task", value: "TASK", verbs: ["audit show", "audit summary"], help: "only what this task did" },
  { name: "head", value: "HASH", verbs: ["audit verify"], help: "a head that was noted before: the log has to hold it still" },
  { name: "mode", value: "heuristic|strict", verbs: ["preflight"], help: "strict: only URLs among the arguments; heuristic: whatever a known tool obviously needs; the configured one otherwise" },
  { name: "config", value: "FILE", verbs: ["proxy", "proxy ctl", "proxy seatbelt-profile"], help: "the file whose [network_proxy] counts, instead of the project's" },
  { name: "log", value: "DIR", verbs: ["proxy"], help: "where the decision log goes, instead of ~/.agentbox/proxy" },
  { name: "approve", verbs: ["proxy"], help: "ask on the terminal about each host that is refused for the first time" },
  { name: "after", value: "SEQ", verbs: ["proxy ctl"], help: "only refusals after the line of this number" },
  { name: "json", verbs: asked, help: "as JSON, for programs" },
  { name: "rebuild", verbs: ["rebuild"], help: "build the image anew, with the newest agents" },
  { name: "help", short: "h", verbs, help: "show this" },
  { name: "version", short: "V", verbs, help: "show the version" },
];

/** Finds an option by what was typed: `--name` or `-n`. Of two with one name it is the one of the verb that `words` begin with. */
export function findOption(typed: string, words: readonly string[] = []): OptionSpec | undefined {
  const line = `${words.join(" ")} `;
  const found = optionSpecs.filter(({ name, short }) => typed === `--${name}` || (short !== undefined && typed === `-${short}`));
  return found.find((spec) => spec.verbs.some((verb) => line.startsWith(`${verb} `))) ?? found[0];
}

/** Lists the options that may be meant on a line that begins with `words`: another verb's are none of an agent's. */
export function listOptions(words: readonly string[]): readonly OptionSpec[] {
  const line = `${words.join(" ")} `;
  return words.length === 0 ? optionSpecs : optionSpecs.filter((spec) => spec.verbs.some((verb) => images.includes(verb) || line.startsWith(`${verb} `)));
}

/** Renders an option as help and messages show it: `-p, --port PORT`. */
export function renderOption({ name, short, value }: OptionSpec): string {
  return `${short === undefined ? "" : `-${short}, `}--${name}${value === undefined ? "" : ` ${value}`}`;
}
