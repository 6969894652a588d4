import { z } from "zod";
import { policyDocumentSchema } from "./policy-document.ts";

export { CONTROL_SOCKET, DECISION_LOG_DIR, KEEPER_DIR, PROXY_SOCKET } from "./keeper-paths.ts";

/**
 * What the command line hands to the entrypoint: one JSON file, mounted read-only at `BOX_SPEC_PATH`.
 * Everything a box is told travels here and not in its environment, because variables of the
 * container act on every program that root runs in it.
 */
export const BOX_SPEC_PATH = "/run/agentbox/box.json";

/**
 * Directory shared with the command line while the launch screen is up, and there only then. The entrypoint appends boot
 * events to `progress.jsonl` there and starts the agent when the command line has removed that file:
 * only then is the terminal the agent's.
 */
export const LAUNCH_DIR = "/run/agentbox/launch";
export const PROGRESS_FILE = "progress.jsonl";

/** What the agent may read about its policy: JSON, and a short text. Beside `box.json`, in one directory that is mounted read-only. */
export const POLICY_JSON_PATH = "/run/agentbox/policy.json";
export const POLICY_TEXT_PATH = "/run/agentbox/policy.md";

/** Where TLS is opened: what the agent's programs trust, the session's authority among it. Beside `box.json` too. */
export const CA_BUNDLE_PATH = "/run/agentbox/ca-bundle.crt";

/** Where the box's own resolver listens, on UDP and TCP port 53. */
export const RESOLVER_ADDRESSES = { 4: "127.0.0.1", 6: "::1" } as const;

/** Where the proxy of the name wall listens. */
export const LISTENER_ADDRESSES = { 4: "127.0.0.1", 6: "::1" } as const;

/** The ports to which connections to 80 and 443 are led: a listener for plain HTTP, and one for TLS. */
export const TRANSPARENT_PORTS = { plain: 64_980, tls: 64_443 } as const;

/** Docker's embedded resolver on user-defined networks. */
export const ENGINE_RESOLVER = "127.0.0.11";

/** Below the agent's home: the volume with the logins that all projects of one user share. */
export const LOGIN_DIR = ".agentbox-login";

const port = z.int().min(1).max(65_535);
const id = z.int().min(0).max(4_294_967_294);

/** A path of the host that is mounted at the same path, and which file it has to be; numbers in decimal. */
const mountedPath = z.strictObject({ target: z.string().startsWith("/"), device: z.string().regex(/^\d+$/), inode: z.string().regex(/^\d+$/) });

const publishedPort = z.strictObject({ port, protocol: z.enum(["tcp", "udp"]) });

export const boxSpecSchema = z.strictObject({
  version: z.literal(2),
  session: z.string().min(1),
  /** Must agree with AGENTBOX_FIREWALL in the container's environment; a difference stops the start. */
  firewall: z.boolean(),
  /** `none`: the box has no network but lo. */
  mode: z.enum(["none", "allowlist", "full"]),
  /**
   * What this container is. `box`: everything in one container. `holder`: the firewall container of the
   * sidecar topology, which holds the namespace and runs no agent. `agent`: the container that joins it,
   * without a capability; its gate checks the walls before the agent starts.
   */
  role: z.enum(["box", "holder", "agent"]),
  policy: policyDocumentSchema,
  /** For the gate of an agent: a name that exists everywhere and that this policy does not let through; null where it lets all of them through. */
  probe: z.string().nullable().optional(),
  user: z.strictObject({ uid: id, gid: id, home: z.string().startsWith("/") }),
  /** `shell --admin`: uid 0 without capabilities while the firewall is on. */
  admin: z.boolean(),
  /** Empty for a holder. */
  command: z.array(z.string()),
  cwd: z.string().startsWith("/"),
  env: z.record(z.string(), z.string()),
  dns: z.strictObject({
    /** The resolvers that the box's own one asks, found by the command line. */
    upstreams: z.array(z.string()),
  }),
  /** Addresses of the site's proxy that the policy names (`nameWall.upstream`), found by the command line. */
  siteProxy: z.array(z.ipv4().or(z.ipv6())).optional(),
  /** Ports that the engine publishes on the host. */
  published: z.array(publishedPort),
  /** The host's addresses on the box's own network; published ports are reached from there. */
  gateways: z.array(z.string()),
  /** Credential files below the home that all projects share; each becomes a link into LOGIN_DIR. */
  logins: z.array(z.string().min(1)).optional(),
  /** What has to be mounted; left out where the box and the host number files differently. */
  mounts: z.array(mountedPath).optional(),
});

export type BoxSpec = z.infer<typeof boxSpecSchema>;
export type MountedPath = z.infer<typeof mountedPath>;
export type PublishedPort = z.infer<typeof publishedPort>;
