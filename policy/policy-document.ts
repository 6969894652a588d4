import { z } from "zod";

const place = z.strictObject({ file: z.string(), line: z.int().optional(), column: z.int().optional() });

/** One entry as it was written, in the grammar of its surface, and where it stands. */
const word = z.strictObject({
  text: z.string(),
  place: place.optional(),
  /** Unix time in ms after which the word counts no more (`policy allow --once`). */
  until: z.int().optional(),
});

/** One ordered rule of the network-policy format; `ports` left out means 80 and 443 (and 22 for the git hosts). */
const rule = z.strictObject({
  domain: z.string(),
  action: z.enum(["allow", "deny"]),
  ports: z.array(z.int().min(1).max(65_535)).min(1).optional(),
  place: place.optional(),
});

/** `{ host = "db", ports = [5432], private = true }`: what the name resolves to when a policy names it first is opened, private or not, for as long as the box runs. */
const privateHost = z.strictObject({ host: z.string(), ports: z.array(z.int().min(1).max(65_535)).min(1), place: place.optional() });

/** What the name wall of a box does, beside the rules that it shares with the other walls. */
const nameWall = z.strictObject({
  /** `limited`: only methods that read, and only where they can be seen. */
  methods: z.enum(["limited", "full"]),
  /** TLS is opened with certificates of the session's own authority, so that methods and inner hosts can be judged. */
  intercept: z.boolean(),
  /** Write down the sizes of intercepted bodies, up to `maxBodyBytes` of each. */
  inspect: z.boolean(),
  maxBodyBytes: z.int().min(0),
  /** Hosts whose TLS is never opened. */
  passthrough: z.array(word),
  /** `refuse`: a hello that may hide its real name is refused. */
  ech: z.enum(["allow", "refuse"]),
  /** Ports on the box's lo of the proxies that programs are told of; null for none. */
  httpPort: z.int().min(1).max(65_535),
  socksPort: z.int().min(1).max(65_535).nullable(),
  /** The site's proxy that everything leaves through, without its password; null for none. */
  upstream: z.strictObject({ host: z.string(), port: z.int().min(1).max(65_535), tls: z.boolean() }).nullable(),
});

/**
 * What the owner of a box decided, complete but for the lists that the image carries: the command line
 * makes it of the configuration, it travels in the box's specification, and a live change replaces it as
 * a whole. Words are kept as they were written; `buildBoxPolicy` judges them, in the box as on the host.
 */
export const policyDocumentSchema = z.strictObject({
  version: z.literal(1),
  agent: z.strictObject({
    name: z.string(),
    /** Entries in the grammar of `allowlists/`. */
    hosts: z.array(z.string()),
    /** Takes the place of api.anthropic.com among the critical services; null keeps them as shipped. */
    critical: z.string().nullable(),
  }),
  /** Entries beside `allowlists/services.sh` and the agent's: allow_hosts, allow_file, presets, `policy allow`. */
  sources: z.array(z.strictObject({ label: z.string(), surface: z.enum(["list", "rules", "allowlist-file"]), words: z.array(word) })),
  blocks: z.array(z.strictObject({ label: z.string(), words: z.array(word) })),
  /** Ordered rules; the label is their file. */
  rules: z.array(rule),
  private: z.array(privateHost),
  /** CIDR blocks of special-purpose addresses that allowed names may lead to. */
  allowPrivate: z.array(word),
  /** Takes the place of CRITICAL_SERVICES as a whole; null keeps the list of the image. */
  critical: z.array(word).nullable(),
  ssh: z.enum(["listed", "any", "off"]),
  /** Report mode: what no rule allows is let through and written down as such. */
  report: z.boolean(),
  /** `name`: TCP 80 and 443 leave through the proxy, which judges the names that a connection tells. `address`: the kernel and the resolver alone decide. */
  enforcement: z.enum(["address", "name"]),
  /** What holds for a name that no rule mentions; `deny-list` opens 80 and 443 to all of them and needs `name`. */
  base: z.enum(["allow-list", "deny-list"]),
  nameWall,
});

export type NameWall = z.infer<typeof nameWall>;
export type PolicyDocument = z.infer<typeof policyDocumentSchema>;
export type DocumentWord = z.infer<typeof word>;
export type DocumentRule = z.infer<typeof rule>;
export type PrivateHost = z.infer<typeof privateHost>;

/** The texts of the lists that the image carries, as `buildBoxPolicy` reads them. */
export const listTextsSchema = z.strictObject({ services: z.string(), github: z.string() });
export type ListTexts = z.infer<typeof listTextsSchema>;

/** A document that adds nothing to the lists of the image. */
export function emptyDocument(agent: PolicyDocument["agent"]): PolicyDocument {
  const lists = { sources: [], blocks: [], rules: [], private: [], allowPrivate: [], critical: null };
  return { version: 1, agent, ...lists, ssh: "listed", report: false, enforcement: "name", base: "allow-list", nameWall: DEFAULT_NAME_WALL };
}

/** How the name wall is where nobody configured it. */
export const DEFAULT_NAME_WALL: NameWall = {
  methods: "full",
  intercept: false,
  inspect: false,
  maxBodyBytes: 4096,
  passthrough: [],
  ech: "allow",
  httpPort: 3128,
  socksPort: 8081,
  upstream: null,
};
