import { hasOption, listNames, type OptionReading, readOptions, valuesOf } from "./command-options.ts";
import { type HostNeed, type Need, SSH_AGENT } from "./preflight-need.ts";
import { type Place, readAuthority, readRemote, readSshHost, readUrl } from "./preflight-place.ts";

const SSH_VALUED = listNames("-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -P -p -Q -R -S -W -w");
const COPY_VALUED = listNames("-B -b -c -D -F -i -J -l -o -P -R -S -s -X");
const RSYNC_VALUED = listNames(
  "-B -e -f -M -T --address --backup-dir --block-size --bwlimit --chmod --chown --compare-dest --compress-level --contimeout --copy-dest --exclude --exclude-from --files-from --filter --groupmap --include --include-from --info --link-dest --log-file --max-delete --max-size --min-size --modify-window --out-format --partial-dir --password-file --port --remote-option --rsh --rsync-path --skip-compress --sockopts --suffix --temp-dir --timeout --usermap",
);

const CONFIG = listNames("-o");
const KEY = listNames("-i");
const PORT = listNames("-p -P --port");
const JUMP = listNames("-J");
const FORWARD_AGENT = listNames("-A");
const ASKS_ONLY = listNames("-V -Q -G");
const SHELL = listNames("-e --rsh");

/** Finds where ssh and its like connect to, and whether they need the agent. */
export function findSshNeeds(words: readonly string[], program: string): Need[] {
  const reading = readOptions(words, { valued: SSH_VALUED, stops: true });
  const [target, ...rest] = reading.operands;
  if (target === undefined || hasOption(reading, ASKS_ONLY)) return [];
  // Options may stand behind the host as well; what follows them is the other machine's command.
  const behind = readOptions(rest, { valued: SSH_VALUED, stops: true });
  return connect({ program, word: target, place: readUrl(target) ?? readSshHost(target) }, { options: [...reading.options, ...behind.options], operands: [] });
}

/** Finds where scp and sftp connect to. */
export function findCopyNeeds(words: readonly string[], program: string): Need[] {
  const reading = readOptions(words, { valued: COPY_VALUED });
  return reading.operands.flatMap((word) => connect({ program, word, place: readUrl(word) ?? readRemote(word) ?? (program === "sftp" ? readSshHost(word) : undefined) }, reading));
}

/** Finds where rsync connects to: its own servers by `rsync://` and `host::module`, else by ssh. */
export function findRsyncNeeds(words: readonly string[]): Need[] {
  const reading = readOptions(words, { valued: RSYNC_VALUED });
  const port = Number(valuesOf(reading, listNames("--port")).at(-1) ?? 873);
  const shell = valuesOf(reading, SHELL).at(-1)?.split(/\s+/).slice(1) ?? [];
  return reading.operands.flatMap((word): Need[] => {
    const daemon = readUrl(word) ?? readAuthority(/^(?:[^\s@:/]+@)?(?<host>[^\s@:/]+)::/.exec(word)?.groups?.["host"] ?? "", port);
    if (daemon !== undefined) return [{ kind: "host", program: "rsync", form: formOf(word), ...daemon }];
    return connect({ program: "rsync", word, place: readRemote(word) }, readOptions(shell, { valued: SSH_VALUED }));
  });
}

/** `ssh-add` does nothing but to talk to the agent. */
export function findAgentNeeds(program: string): Need[] {
  return [{ kind: "socket", program, socket: SSH_AGENT, sure: true }];
}

/** A word of a command, and where it leads. */
type Target = { program: string; word: string; place: Place | undefined };

function formOf(word: string): HostNeed["form"] {
  return word.includes("://") ? "url" : "remote";
}

/** One connection by ssh. A jump host takes the place of the target; a command of one's own may lead anywhere. */
function connect({ program, word, place: target }: Target, reading: OptionReading): Need[] {
  const config = new Map(valuesOf(reading, CONFIG).map((text) => splitConfig(text)));
  if (target === undefined || config.has("proxycommand")) return [];
  const jump = (valuesOf(reading, JUMP).at(-1) ?? config.get("proxyjump"))?.split(",")[0];
  if (jump !== undefined && jump !== "none") return withAgent({ program, word: jump, place: readUrl(jump) ?? readJump(jump) }, reading, config);
  const port = Number(valuesOf(reading, PORT).at(-1) ?? config.get("port") ?? target.port);
  const place = readAuthority(bracket(config.get("hostname") ?? target.host), Number.isInteger(port) ? port : target.port);
  return withAgent({ program, word, place }, reading, config);
}

function withAgent({ program, word, place }: Target, reading: OptionReading, config: ReadonlyMap<string, string>): Need[] {
  if (place === undefined) return [];
  const forwards = hasOption(reading, FORWARD_AGENT) || config.get("forwardagent")?.toLowerCase() === "yes";
  const hasKey = hasOption(reading, KEY) || config.has("identityfile") || config.get("identityagent") === "none";
  const agent: Need[] = forwards || !hasKey ? [{ kind: "socket", program, socket: SSH_AGENT, sure: forwards }] : [];
  return [{ kind: "host", program, form: formOf(word), host: place.host, port: place.port }, ...agent];
}

/** `Port=22` or `Port 22`; the first of a name counts for ssh, and one is enough here. */
function splitConfig(text: string): [string, string] {
  const found = /^\s*(?<name>[A-Za-z]+)\s*[=\s]\s*(?<value>[^]*)/.exec(text)?.groups;
  return [found?.["name"]?.toLowerCase() ?? "", found?.["value"] ?? ""];
}

function readJump(text: string): Place | undefined {
  const place = readAuthority(text.slice(text.lastIndexOf("@") + 1), 22);
  return place?.host.includes(".") === true ? place : undefined;
}

function bracket(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
