/** Where a word leads. */
export type Place = { host: string; port: number; web?: "http" | "https" | undefined };

const PORTS: Readonly<Record<string, number>> = {
  http: 80, https: 443, ws: 80, wss: 443, ftp: 21, ftps: 990, sftp: 22, scp: 22, ssh: 22, git: 9418, svn: 3690, rsync: 873, telnet: 23,
  postgres: 5432, postgresql: 5432, mysql: 3306, mariadb: 3306, redis: 6379, rediss: 6379, mongodb: 27_017, amqp: 5672, amqps: 5671,
  ldap: 389, ldaps: 636, smtp: 25, smtps: 465, imap: 143, imaps: 993, mqtt: 1883, mqtts: 8883, nats: 4222, memcached: 11_211,
};

/** `git+https://`, and what pip, npm and others put in front: `name @ `, `name@`. */
const URL_WORD = /^(?:[\w.@/[\],-]{1,200}? ?@ ?)?(?:(?:git|hg|svn|bzr)\+)?(?<scheme>[a-z][a-z0-9]*):\/\/(?<authority>[^/?#\\]*)/i;

/** Reads a URL of a scheme that connects somewhere. Undefined for everything else, and where the host is a template or only known at run time. */
export function readUrl(word: string): Place | undefined {
  const { scheme = "", authority = "" } = URL_WORD.exec(word)?.groups ?? {};
  const name = scheme.toLowerCase();
  const port = Object.hasOwn(PORTS, name) ? PORTS[name] : undefined;
  const place = port === undefined ? undefined : readAuthority(authority.slice(authority.lastIndexOf("@") + 1), port);
  return place === undefined ? undefined : { ...place, web: name === "https" || name === "wss" ? "https" : name === "http" || name === "ws" ? "http" : undefined };
}

/** Reads `host`, `host:port` or `[v6]:port`; `port` is what holds where none is written. */
export function readAuthority(text: string, port: number): Place | undefined {
  const { v6, host = v6, typed } = /^(?:\[(?<v6>[0-9a-f:.%]+)\]|(?<host>[^:[\]]+))(?::(?<typed>[0-9]{0,5}))?$/i.exec(text)?.groups ?? {};
  if (host === undefined || isTemplate(host)) return undefined;
  const number = typed === undefined || typed === "" ? port : Number(typed);
  return number >= 1 && number <= 65_535 ? { host, port: number } : undefined;
}

/**
 * Reads what git, scp and rsync call a remote: `user@host:path`. Undefined for paths, for what is only known at
 * run time, and for a name without a dot, which may be an alias of the user's ssh configuration.
 */
export function readRemote(word: string): Place | undefined {
  const found = /^(?:[^\s@:/]+@)?(?:\[(?<bracketed>[^\]]+)\]|(?<plain>[^\s@:/[\]]+)):(?!:)/.exec(word)?.groups;
  if (found === undefined) return undefined;
  const { bracketed, plain } = found;
  if (bracketed !== undefined) return bracketed.split(":").length > 2 ? readAuthority(`[${bracketed}]`, 22) : readAuthority(bracketed, 22);
  return plain === undefined ? undefined : readSshHost(plain);
}

/** Reads `user@host` as ssh takes it. */
export function readSshHost(word: string): Place | undefined {
  const host = word.slice(word.lastIndexOf("@") + 1);
  const place = host.split(":").length > 2 ? readAuthority(`[${host}]`, 22) : readAuthority(host, 22);
  return place !== undefined && /[.:]/.test(place.host) ? place : undefined;
}

/** Names of templates and placeholders are no hosts: `<host>`, `{name}`, `$HOST`, `*`, `%s`. */
function isTemplate(host: string): boolean {
  return /[${}<>*%\s]/.test(host.replace(/%[a-z0-9._~-]+$/i, (zone) => (host.includes(":") ? "" : zone)));
}
