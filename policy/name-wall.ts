import { TRANSPARENT_PORTS } from "./box-spec.ts";
import { collectComplaints, type Complaint, ConfigError } from "./errors.ts";
import type { ParsedConfig } from "./config-file.ts";
import { renderHost } from "./host-name.ts";
import { isLoopback } from "./loopback.ts";
import { DEFAULT_NAME_WALL, type NameWall } from "./policy-document.ts";
import { parseListener, parseUpstream } from "./proxy-words.ts";

/** Makes what the name wall of a box does of its configuration. Throws ConfigError for listeners that a box cannot have. */
export function buildNameWall(chosen: ParsedConfig | undefined): NameWall {
  const proxy = chosen?.config.network_proxy;
  if (chosen === undefined || proxy === undefined) return { ...DEFAULT_NAME_WALL, ech: chosen?.config.network?.ech ?? DEFAULT_NAME_WALL.ech };
  const complaints: Complaint[] = [];
  const read = (key: "proxy_url" | "socks_url", fallback: number): number => {
    const text = proxy[key];
    if (text === undefined) return fallback;
    return collectComplaints(complaints, () => readBoxPort(text, chosen, key)) ?? fallback;
  };
  const httpPort = read("proxy_url", 3128);
  const socksPort = proxy.enable_socks5 === false ? null : read("socks_url", 8081);
  if (socksPort === httpPort) complaints.push({ what: `proxy_url and socks_url name the same port ${httpPort}`, expected: "two ports", place: chosen.placeOf(["network_proxy", "socks_url"]) });
  if (complaints.length > 0) throw new ConfigError(complaints);
  const { mitm = {} } = proxy;
  return {
    methods: proxy.mode ?? "full",
    intercept: mitm.enabled ?? false,
    inspect: mitm.inspect ?? false,
    maxBodyBytes: mitm.max_body_bytes ?? DEFAULT_NAME_WALL.maxBodyBytes,
    passthrough: (mitm.passthrough ?? []).map((text, index) => ({ text, place: chosen.placeOf(["network_proxy", "mitm", "passthrough", index]) })),
    ech: chosen.config.network?.ech ?? "allow",
    httpPort,
    socksPort,
    upstream: readUpstream(proxy.upstream_proxy),
  };
}

/** In a box only the agent asks: the listeners are on its lo, whatever the address says. */
function readBoxPort(text: string, { placeOf }: ParsedConfig, key: string): number {
  const listener = parseListener(text);
  const place = placeOf(["network_proxy", key]);
  if (!listener.ok) throw new ConfigError({ ...listener.complaint, place });
  const { host, port } = listener.value;
  if (!isLoopback(host)) throw new ConfigError({ what: `${key} names ${renderHost(host)}`, expected: "127.0.0.1: in a box the proxy listens for its agent only", fix: `write ${key} = "http://127.0.0.1:${port}"`, place });
  if ([53, 80, 443, ...Object.values(TRANSPARENT_PORTS)].includes(port)) throw new ConfigError({ what: `${key} takes port ${port}, which a box needs itself`, expected: "another port", place });
  return port;
}

/** Without the password: what a box is told may be read by its agent. */
function readUpstream(text: string | undefined): NameWall["upstream"] {
  const upstream = text === undefined ? undefined : parseUpstream(text);
  if (upstream?.ok !== true) return null;
  const { host, port, tls } = upstream.value;
  return { host: renderHost(host), port, tls };
}
