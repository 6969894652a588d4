import { z } from "zod";

/** What the lab's resolver says about a name; every field that is absent leaves the zone's own answer. */
const dnsBehaviourSchema = z.strictObject({
  a: z.array(z.ipv4()).optional(),
  aaaa: z.array(z.ipv6()).optional(),
  txt: z.array(z.string()).optional(),
  /** Takes the place of all addresses; followed as far as the lab knows the target. */
  cname: z.string().optional(),
  ttl: z.int().min(0).optional(),
  /** `order` moves the first address to the end with each answer, `one` gives a single address each time. */
  rotate: z.enum(["order", "one"]).optional(),
  delayMs: z.number().min(0).max(600_000).optional(),
  rcode: z.enum(["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"]).optional(),
  silent: z.boolean().optional(),
  /** Only the first so many questions for the name meet `rcode` or `silent`. */
  failFirst: z.int().min(1).optional(),
  /** Over UDP an empty answer with the truncation bit. */
  truncate: z.boolean().optional(),
  /** The answer carries another transaction's id, or another name's question. */
  lie: z.enum(["id", "question"]).optional(),
});
export type DnsBehaviour = z.infer<typeof dnsBehaviourSchema>;

/** Keys are names, `*.suffix` or `*`; null removes a behaviour. */
export const dnsBehavioursSchema = z.record(z.string(), dnsBehaviourSchema.nullable());
export type DnsBehaviours = z.infer<typeof dnsBehavioursSchema>;

/** What a TCP connection meets at an address: a reset, or silence after the handshake. */
const hostBehaviourSchema = z.strictObject({ tcp: z.enum(["reset", "silent"]) });

/** Keys are addresses or `*`. */
export const hostBehavioursSchema = z.record(z.string(), hostBehaviourSchema.nullable());
export type HostBehaviours = z.infer<typeof hostBehavioursSchema>;

/** One question as it reached a resolver; `name` keeps the letter case it was asked in. */
export const questionSchema = z.object({
  at: z.number(),
  name: z.string(),
  type: z.string(),
  transport: z.enum(["udp", "tcp", "tls", "https"]),
  server: z.string(),
  client: z.string(),
});
export type RecordedQuestion = z.infer<typeof questionSchema>;

/** One TCP connection that was accepted, or one UDP datagram that arrived. */
export const connectionSchema = z.object({
  at: z.number(),
  transport: z.enum(["tcp", "udp"]),
  address: z.string(),
  port: z.number(),
  client: z.string(),
});
export type RecordedConnection = z.infer<typeof connectionSchema>;

/** One HTTP request, or one step of an SSH session (`method` is AUTH or EXEC, `path` the user or command). */
export const requestSchema = z.object({
  at: z.number(),
  kind: z.enum(["http", "https", "ssh"]),
  address: z.string(),
  port: z.number(),
  client: z.string(),
  host: z.string(),
  sni: z.string(),
  method: z.string(),
  path: z.string(),
});
export type RecordedRequest = z.infer<typeof requestSchema>;

export const stateSchema = z.object({ ready: z.literal(true), names: z.number(), resolvers: z.array(z.string()) });
export type LabState = z.infer<typeof stateSchema>;

/** What `serve` is told: where the lab attaches and where it keeps its files. */
export const serveOptionsSchema = z.strictObject({
  interface: z.string(),
  /** The lab's own addresses on the network it shares with the boxes, their gateway and resolver. */
  v4: z.strictObject({ address: z.ipv4(), subnet: z.cidrv4() }),
  v6: z.strictObject({ address: z.ipv6(), subnet: z.cidrv6() }),
  stateDirectory: z.string(),
  socket: z.string(),
  /** For what need not outlive the lab: its git repositories. */
  scratchDirectory: z.string(),
  names: z.array(z.string()),
  /** End when standard input ends: the starter's death then never leaves a lab behind. */
  followStdin: z.boolean(),
});
export type ServeOptions = z.infer<typeof serveOptionsSchema>;
