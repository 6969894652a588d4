import { z } from "zod";

/**
 * One line of a session's decision log, `~/.agentbox/sessions/ID/decisions.jsonl`. `seq` has no gaps
 * within a session, over restarts of the proxy and over rotated files. `time` is RFC 3339 with
 * milliseconds, in UTC.
 */
const common = { time: z.string(), seq: z.int().min(0), session: z.string() };

const port = z.int().min(1).max(65_535);

/**
 * A decision about one (protocol, host, port, reason). Repeats within 10 s are one line with a `count`,
 * written when the window closes; the first of them is written at once with count 1, so `count` of a
 * later line tells the further ones only.
 */
const decision = z.strictObject({
  kind: z.literal("decision"),
  ...common,
  protocol: z.enum(["dns", "address", "http", "https-connect", "socks5-tcp", "tls-sni"]),
  /** Canonical name or address; a malformed one quoted. */
  host: z.string(),
  /** None for DNS. */
  port: port.nullable(),
  /** DNS question type (`A`, `TXT`) or transport of a packet (`tcp`, `udp`, `icmp`). */
  type: z.string().nullable(),
  /** Addresses that an answer was given with. */
  addresses: z.array(z.string()),
  /** `report`: would have been denied, but the box runs in report mode. */
  action: z.enum(["allow", "deny", "report"]),
  reason: z.string(),
  /** The HTTP method, where there is one. */
  method: z.string().nullable().optional(),
  /** The rule that decided, in canonical form, and where it was written. */
  rule: z.string().nullable(),
  source: z.string().nullable(),
  detail: z.string().nullable(),
  /** The command that would allow it; none where no command can. */
  hint: z.string().nullable(),
  /** Who asked, as far as it is known. */
  client: z.strictObject({ address: z.string().nullable().optional(), uid: z.int().nullable(), pid: z.int().nullable(), command: z.string().nullable() }).nullable(),
  count: z.int().min(1),
});

/**
 * What passed between a client and one allowed place: written when a connection ends (or a request on a
 * kept one), those of one (protocol, method, host, port) within 10 s as one line. `flows` counts them,
 * `durationMs` is the sum, `cut` tells that a new policy ended them.
 */
const traffic = z.strictObject({
  kind: z.literal("traffic"),
  ...common,
  protocol: z.enum(["http", "https-connect", "socks5-tcp", "tls-sni"]),
  method: z.string().nullable(),
  host: z.string(),
  port,
  /** Bytes from the client and to it. */
  bytesUp: z.int().min(0),
  bytesDown: z.int().min(0),
  durationMs: z.int().min(0),
  flows: z.int().min(1),
  cut: z.boolean(),
  /**
   * With `inspect`: the bytes of an intercepted request's body and of its response's, each counted up to
   * `max_body_bytes`. Other sizes are another line.
   */
  bodies: z.strictObject({ up: z.int().min(0), down: z.int().min(0) }).optional(),
});

/** Something that happened to the walls themselves. */
const event = z.strictObject({
  kind: z.literal("event"),
  ...common,
  event: z.enum(["start", "stop", "proxy-restarted", "policy-replaced", "policy-refused", "upstream-failing", "upstream-back", "set-full", "lines-dropped", "mode-changed", "ca-made", "certificate-issued", "certificate-refused", "unix-socket", "connections-limited"]),
  detail: z.string(),
  added: z.array(z.string()),
  removed: z.array(z.string()),
});

export const decisionRecordSchema = z.discriminatedUnion("kind", [decision, traffic, event]);
export type DecisionRecord = z.infer<typeof decisionRecordSchema>;

type Unnumbered<T> = Omit<T, "time" | "seq" | "session">;
/** A record before the log gives it its time and number. */
export type DecisionEntry = Unnumbered<z.infer<typeof decision>> | Unnumbered<z.infer<typeof traffic>> | Unnumbered<z.infer<typeof event>>;
export type TrafficEntry = Unnumbered<z.infer<typeof traffic>>;

/** Name of the live file in the log's directory; older ones have `.1` to `.3` appended. */
export const DECISION_LOG_FILE = "decisions.jsonl";
