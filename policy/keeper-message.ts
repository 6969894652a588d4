import { z } from "zod";
import { listTextsSchema, policyDocumentSchema } from "./policy-document.ts";

/** So many addresses of a private name are opened. */
export const MAX_PIN_ADDRESSES = 64;

// What the keeper, the proxy and the command line say to each other: one JSON object a line over unix sockets.

const address = z.string();
const pin = z.array(address).max(MAX_PIN_ADDRESSES);
const complaint = z.strictObject({
  what: z.string(),
  expected: z.string().optional(),
  fix: z.string().optional(),
  place: z.strictObject({ file: z.string(), line: z.int().optional(), column: z.int().optional() }).optional(),
});

/** From the proxy to the keeper. `id` numbers the questions of one connection; the answer bears the same. */
export const proxyMessageSchema = z.discriminatedUnion("op", [
  /** An allowed name leads to these addresses; `ttl` in seconds. The keeper finds the ports itself, by its own policy. */
  z.strictObject({ op: z.literal("learn"), id: z.int(), name: z.string(), addresses: z.array(z.strictObject({ address, ttl: z.int().min(0) })).min(1) }),
  /** What a name of `private` resolved to, where the `policy` did not say. Empty where it does not resolve. */
  z.strictObject({ op: z.literal("pin"), id: z.int(), name: z.string(), addresses: pin }),
  /** The policy of this version serves from now on, or could not be built and the one before goes on. */
  z.strictObject({ op: z.literal("policy"), version: z.int(), ok: z.boolean(), detail: z.string() }),
  /** What the status shows of the proxy; sent when it changes. `degraded` holds one sentence a trouble. */
  z.strictObject({ op: z.literal("health"), degraded: z.array(z.string()) }),
]);
export type ProxyMessage = z.infer<typeof proxyMessageSchema>;

/** From the keeper to the proxy. The first message of a connection is `policy`. */
export const keeperMessageSchema = z.discriminatedUnion("op", [
  z.strictObject({
    op: z.literal("policy"),
    version: z.int(),
    session: z.string(),
    document: policyDocumentSchema,
    lists: listTextsSchema,
    /** The box's hosts file as it was at boot: name to addresses. */
    hosts: z.record(z.string(), z.array(address)),
    /** What names of `private` led to when they were first asked for: name to addresses. They are not asked for again. */
    pins: z.record(z.string(), pin),
    /** Resolvers to ask, in order of preference. */
    upstreams: z.array(address),
    /** The engine's embedded resolver, which knows the names of sibling containers; null where there is none. */
    engineResolver: address.nullable(),
  }),
  /** The addresses are in the kernel's sets (or the private ones are pinned); only now may the client have its answer. */
  z.strictObject({ op: z.literal("done"), id: z.int(), ok: z.boolean(), detail: z.string() }),
  /** Something for the decision log that the keeper saw: a rejected packet, a replaced policy. An entry of `decision-record.ts`. */
  z.strictObject({ op: z.literal("record"), entry: z.record(z.string(), z.unknown()) }),
]);
export type KeeperMessage = z.infer<typeof keeperMessageSchema>;

/** From the command line (by the engine's exec) or the entrypoint to the keeper: one request a connection. */
export const controlRequestSchema = z.discriminatedUnion("op", [
  z.strictObject({ op: z.literal("replace"), document: policyDocumentSchema }),
  z.strictObject({ op: z.literal("status") }),
  /** Answered when the proxy serves the policy and the private names are pinned, or it is clear that it never will. */
  z.strictObject({ op: z.literal("await-ready") }),
  /** From the entrypoint when all names of the start are resolved: what an earlier run in this namespace had learned beyond them is closed. */
  z.strictObject({ op: z.literal("settle") }),
]);
export type ControlRequest = z.infer<typeof controlRequestSchema>;

/** What the keeper knows of itself. Times are Unix ms. */
const status = z.strictObject({
  version: z.int(),
  /** When the policy in force came into force. */
  since: z.int(),
  /** One sentence for each trouble: upstreams that fail, a refused policy, a full set. */
  degraded: z.array(z.string()),
  learned: z.strictObject({ names: z.int(), addresses: z.int() }),
  proxyRestarts: z.int(),
});
export type KeeperStatus = z.infer<typeof status>;

export const controlReplySchema = z.discriminatedUnion("ok", [
  z.strictObject({ ok: z.literal(true), status, added: z.array(z.string()), removed: z.array(z.string()) }),
  /** The policy in force before goes on. */
  z.strictObject({ ok: z.literal(false), complaints: z.array(complaint), status: status.nullable() }),
]);
export type ControlReply = z.infer<typeof controlReplySchema>;
