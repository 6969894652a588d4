import type { SimpleCommand } from "./command-line.ts";
import { hasOption, listNames, readOptions, valuesOf } from "./command-options.ts";
import { nameOf } from "./command-wrapper.ts";
import { findGitNeeds } from "./preflight-git.ts";
import type { HostNeed, Need } from "./preflight-need.ts";
import { readAuthority, readUrl } from "./preflight-place.ts";
import { findRegistryNeeds } from "./preflight-registry.ts";
import { findAgentNeeds, findCopyNeeds, findRsyncNeeds, findSshNeeds } from "./preflight-ssh.ts";
import { findCurlNeeds, findHttpieNeeds, findWgetNeeds } from "./preflight-web.ts";

/** Programs that take a URL for text. */
const LOCAL = listNames(
  ". : [ [[ ack ag agentbox agentbox-run agentbox-setup alias awk base64 basename bc bat cat cd chmod chown cmp code column comm cp cut date dd declare df diff dirname du echo egrep emacs env expand export expr false fgrep file fold gawk grep gunzip gzip head help history install join jq kill less let ln local logger look ls make man md5sum mkdir mktemp more mv nano nl nvim od paste pgrep printf ps pwd read readlink readonly realpath rev rg rm rmdir sed seq set sha256sum shift sleep sort split stat strings tac tail tar tee test touch tr trap tree true tsort type typeset uname uniq unset unzip vi vim wall wc whereis which xxd yq zcat zgrep zip",
);

/** Finds what one command needs that starts no other one. `program` in the answer is its name without a directory. */
export function findToolNeeds({ words, variables }: SimpleCommand): Need[] {
  const [path = "", ...rest] = words;
  const program = nameOf(path);
  // `python3 -m pip` is pip.
  if (/^(?:python|pypy|py)[0-9.]*$/.test(program) && rest[0] === "-m" && rest[1] !== undefined) return findToolNeeds({ words: rest.slice(1), variables, input: undefined });
  switch (program) {
    case "curl":
      return findCurlNeeds(rest);
    case "wget":
    case "wget2":
      return findWgetNeeds(rest);
    case "http":
    case "https":
    case "xh":
    case "xhs":
      return findHttpieNeeds(rest, program);
    case "git":
      return findGitNeeds(rest, variables);
    case "ssh":
    case "autossh":
    case "mosh":
    case "ssh-copy-id":
      return findSshNeeds(rest, program);
    case "scp":
    case "sftp":
    case "sshfs":
      return findCopyNeeds(rest, program);
    case "rsync":
      return findRsyncNeeds(rest);
    case "ssh-add":
      return findAgentNeeds(program);
    case "go":
      return findGoNeeds(rest, variables);
    case "docker":
      return findDockerNeeds(rest, variables);
    case "openssl":
      return findOpensslNeeds(rest);
    case "psql":
    case "pg_dump":
    case "pg_restore":
    case "mysql":
    case "mysqldump":
    case "mariadb":
    case "redis-cli":
      return findDatabaseNeeds(rest, program, variables);
    case "nc":
    case "ncat":
    case "netcat":
    case "telnet":
      return findPlainNeeds(rest, program);
    default:
      return findRegistryNeeds({ program, words: rest, variables }) ?? (LOCAL.has(program) ? [] : findUrlNeeds(rest, program));
  }
}

/** Of a program that is not known: its operands that are URLs. The value of an option may be written into a page. */
function findUrlNeeds(rest: readonly string[], program: string): Need[] {
  return rest.flatMap((word, index): Need[] => {
    const place = rest[index - 1]?.startsWith("-") === true ? undefined : readUrl(word);
    return place === undefined ? [] : [{ kind: "host", program, form: "url", ...place }];
  });
}

const PROXY = "proxy.golang.org";
const SUMS = "sum.golang.org";

/** Go's modules come from a proxy, and with `direct` from the host in their path. */
function findGoNeeds(rest: readonly string[], variables: ReadonlyMap<string, string>): Need[] {
  const { operands } = readOptions(rest, { valued: listNames("-C -o -p -mod -modfile -tags -ldflags -gcflags -overlay"), singleDash: true });
  const [verb, ...named] = operands;
  const modules = named.filter((word) => /^[\w-]+(?:\.[\w-]+)+\//.test(word));
  const asks = verb === "mod" ? named[0] === "download" || named[0] === "tidy" : verb === "get" ? modules.length > 0 : (verb === "install" || verb === "run") && modules.some((word) => word.includes("@"));
  if (!asks) return [];
  const proxy = variables.get("GOPROXY")?.split(/[,|]/)[0];
  const sums = /^off$|[*]/.test(variables.get("GOSUMDB") ?? "") || variables.has("GONOSUMDB") || variables.has("GOPRIVATE") ? [] : [needModules(SUMS, "default")];
  if (proxy === "off") return [];
  if (proxy === "direct") return [...modules.map((word) => needModules(word.slice(0, word.indexOf("/")), "remote")), ...sums];
  const place = proxy === undefined || proxy === "" ? undefined : readUrl(proxy);
  if (place !== undefined) return [{ kind: "host", program: "go", form: "remote", ...place }, ...sums];
  return proxy === undefined || proxy === "" ? [needModules(PROXY, "default"), ...sums] : [];
}

function needModules(host: string, form: HostNeed["form"]): Need {
  return { kind: "host", program: "go", host, port: 443, form, web: "https" };
}

const DOCKER_SOCKET = "/var/run/docker.sock";

/** Docker's client does nothing itself. */
function findDockerNeeds(rest: readonly string[], variables: ReadonlyMap<string, string>): Need[] {
  const reading = readOptions(rest, { valued: listNames("-c -H -l --config --context --host --log-level"), stops: true });
  const verb = reading.operands[0];
  if (verb === undefined || verb === "help" || verb === "context" || hasOption(reading, listNames("-v --version --help -c --context")) || variables.has("DOCKER_CONTEXT")) return [];
  const host = valuesOf(reading, listNames("-H --host")).at(-1) ?? variables.get("DOCKER_HOST") ?? `unix://${DOCKER_SOCKET}`;
  if (host.startsWith("unix://")) return [{ kind: "socket", program: "docker", socket: host.slice("unix://".length), sure: true }];
  const place = /^(?:tcp|ssh):\/\/(?<authority>[^/]*)/.exec(host)?.groups?.["authority"];
  const target = place === undefined ? undefined : readAuthority(place.slice(place.lastIndexOf("@") + 1), host.startsWith("ssh") ? 22 : 2375);
  return target === undefined ? [] : [{ kind: "host", program: "docker", form: "remote", ...target }];
}

/** `nc HOST PORT`. */
function findPlainNeeds(rest: readonly string[], program: string): Need[] {
  const reading = readOptions(rest, { valued: listNames("-b -e -E -i -I -l -M -m -O -P -p -q -s -T -V -W -w -X -x") });
  const [host, port] = reading.operands;
  if (host === undefined || hasOption(reading, listNames("-l -U --listen"))) return [];
  const place = readAuthority(host.includes(":") ? `[${host}]` : host, Number(port ?? (program === "telnet" ? 23 : 0)));
  return place === undefined ? [] : [{ kind: "host", program, form: "remote", ...place }];
}

/** `openssl s_client -connect HOST:PORT`; no other of its commands asks anybody. */
function findOpensslNeeds(rest: readonly string[]): Need[] {
  const at = rest.findLastIndex((word) => word === "-connect" || word === "--connect");
  const place = rest[0] !== "s_client" || at < 0 ? undefined : readAuthority(rest[at + 1] ?? "", 443);
  return place === undefined ? [] : [{ kind: "host", program: "openssl", form: "remote", ...place }];
}

const DATABASE_PORTS: Readonly<Record<string, number>> = { psql: 5432, pg_dump: 5432, pg_restore: 5432, mysql: 3306, mysqldump: 3306, mariadb: 3306, "redis-cli": 6379 };

/** A client of a database asks the host it is given, and without one this machine; psql takes a URL as well. */
function findDatabaseNeeds(rest: readonly string[], program: string, variables: ReadonlyMap<string, string>): Need[] {
  const reading = readOptions(rest, { valued: listNames("-h --host -p --port -P -U --username -u --user -d --dbname -c -f -n -a --command --file") });
  const url = [...reading.operands, ...valuesOf(reading, listNames("-d --dbname -u"))].map((word) => readUrl(word)).find((place) => place !== undefined);
  if (url !== undefined) return [{ kind: "host", program, form: "url", ...url }];
  const postgres = DATABASE_PORTS[program] === 5432;
  const host = valuesOf(reading, listNames("-h --host")).at(-1) ?? (postgres ? variables.get("PGHOST") : undefined);
  if (host === undefined || host === "" || host.startsWith("/")) return [];
  const named = valuesOf(reading, listNames(program.startsWith("m") ? "-P --port" : "-p --port")).at(-1) ?? (postgres ? variables.get("PGPORT") : undefined);
  const place = readAuthority(host.includes(":") ? `[${host}]` : host, Number(named ?? DATABASE_PORTS[program]));
  return place === undefined ? [] : [{ kind: "host", program, form: "remote", ...place }];
}
