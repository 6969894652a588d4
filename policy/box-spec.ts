import { z } from "zod";

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

/** Below the agent's home: the volume with the logins that all projects of one user share. */
export const LOGIN_DIR = ".agentbox-login";

const port = z.int().min(1).max(65_535);
const id = z.int().min(0).max(4_294_967_294);

/** A path of the host that is mounted at the same path, and which file it has to be; numbers in decimal. */
const mountedPath = z.strictObject({ target: z.string().startsWith("/"), device: z.string().regex(/^\d+$/), inode: z.string().regex(/^\d+$/) });

const publishedPort = z.strictObject({ port, protocol: z.enum(["tcp", "udp"]) });

export const boxSpecSchema = z.strictObject({
  version: z.literal(1),
  session: z.string().min(1),
  /** Must agree with AGENTBOX_FIREWALL in the container's environment; a difference stops the start. */
  firewall: z.boolean(),
  /** `none`: the box has no network but lo. */
  mode: z.enum(["none", "allowlist", "full"]),
  agent: z.strictObject({
    name: z.string(),
    /** Entries in the grammar of `allowlists/`, added to ALLOWED_SERVICES. */
    hosts: z.array(z.string()),
    /** Takes the place of api.anthropic.com in CRITICAL_SERVICES; null keeps the list as shipped. */
    critical: z.string().nullable(),
  }),
  user: z.strictObject({ uid: id, gid: id, home: z.string().startsWith("/") }),
  /** `shell --admin`: uid 0 without capabilities while the firewall is on. */
  admin: z.boolean(),
  command: z.array(z.string()).min(1),
  cwd: z.string().startsWith("/"),
  env: z.record(z.string(), z.string()),
  dns: z.strictObject({
    /** Addresses that the engine's embedded resolver forwards to from inside the box's namespace. */
    upstreams: z.array(z.string()),
  }),
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
