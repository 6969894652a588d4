/** The verbs of the command line. `start` is what runs when none is written; `rebuild` is written `--rebuild`. */
export const verbs = ["start", "login", "shell", "run", "rebuild", "ssh-init", "doctor", "cleanup"] as const;
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

/** Every option, in the order in which help lists them. */
export const optionSpecs: readonly OptionSpec[] = [
  { name: "port", short: "p", value: "PORT", repeat: true, verbs: boxVerbs, help: "publish a port of the box: PORT, HOST:CONTAINER or ADDRESS:HOST:CONTAINER, with /udp for UDP; on 127.0.0.1 unless an address is written" },
  { name: "add-dir", value: "DIR", repeat: true, verbs: boxVerbs, help: "mount another directory, writable, at its own path" },
  { name: "yes-secrets", verbs: boxVerbs, help: "let --add-dir take a directory that usually holds secrets" },
  { name: "env", short: "e", value: "KEY[=VALUE]", repeat: true, verbs: boxVerbs, help: "set a variable for the agent; without a value, the host's" },
  { name: "ignore-dot-env", verbs: boxVerbs, help: "do not read the project's .env" },
  { name: "dry-run", verbs: boxVerbs, help: "show the allowlist, mounts and engine command, and start nothing" },
  { name: "full-network", verbs: boxVerbs, help: "no firewall for this start, whatever AGENTBOX_FIREWALL says" },
  { name: "admin", verbs: ["shell"], help: "as root, without capabilities while the firewall is on" },
  { name: "engine", value: "docker|podman", verbs: [...images, "doctor", "cleanup"], help: "the container engine; found by itself otherwise" },
  { name: "dns", value: "ADDRESS", repeat: true, verbs: boxVerbs, help: "a resolver for the box, instead of the host's" },
  { name: "add-host", value: "HOST:IP", repeat: true, verbs: boxVerbs, help: "a line for the box's hosts file" },
  { name: "network", value: "NAME", verbs: boxVerbs, help: "a bridge network of the engine to join" },
  { name: "agents", value: "LIST", verbs: images, help: 'agents in the image, such as "claude codex@1.2.3", or none (remembered)' },
  { name: "package", value: "NAME", repeat: true, verbs: images, help: "a further Debian package for the image, or none to drop them (remembered)" },
  { name: "base", value: "local|IMAGE", verbs: images, help: "the image to build on; local makes one with debootstrap (remembered)" },
  { name: "ca-file", value: "FILE", verbs: images, help: "certificates of a site's own authority, for build and box, or none (remembered)" },
  { name: "rebuild", verbs: ["rebuild"], help: "build the image anew, with the newest agents" },
  { name: "help", short: "h", verbs, help: "show this" },
  { name: "version", short: "V", verbs, help: "show the version" },
];

/** Finds an option by what was typed: `--name` or `-n`. */
export function findOption(typed: string): OptionSpec | undefined {
  return optionSpecs.find(({ name, short }) => typed === `--${name}` || (short !== undefined && typed === `-${short}`));
}

/** Renders an option as help and messages show it: `-p, --port PORT`. */
export function renderOption({ name, short, value }: OptionSpec): string {
  return `${short === undefined ? "" : `-${short}, `}--${name}${value === undefined ? "" : ` ${value}`}`;
}
