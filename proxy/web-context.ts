import type { Access, Admitted } from "./access/access.ts";
import type { Dialled, Dialler } from "./access/dial.ts";
import type { Flows } from "./access/flows.ts";
import type { Asked } from "./access/judgement.ts";
import type { Connection } from "./net/connection.ts";

/** A client's way to a place that was let through: asked for by CONNECT, SOCKS, or a TLS hello. */
export type Passage = {
  asked: Asked;
  admitted: Admitted;
  /** Already open where the client was told so. */
  upstream: Connection | undefined;
};

/** Opens the way to an admitted place. */
export type OpenUpstream = (admitted: Admitted) => Promise<Dialled>;

/** A connection to the host around, which nobody has used yet, and the policy that it was opened under. */
type Opened = { connection: Connection; epoch: number };

/**
 * HTTP that is not asked of the proxy by name: from a redirected port, or inside a tunnel or opened TLS. What
 * was encrypted leaves only through the `openUpstream` beside it, which verifies who is there.
 */
export type HttpInside = ({ scheme: "http"; opened?: Opened | undefined } | { scheme: "https"; openUpstream: OpenUpstream }) & {
  port: number;
  /** The host of the tunnel around it, which every request has to name; undefined on a redirected port, where the Host decides. */
  host: string | undefined;
  protocol: Asked["protocol"];
  client: Asked["client"];
};

/**
 * What the listeners share. Each protocol lies in a folder of its own; where one finds another inside it, it
 * hands the connection over by these functions. `first` are bytes that were read already, for the next
 * owner to keep.
 */
export type WebContext = {
  access: Access;
  flows: Flows;
  dialler: Dialler;
  /** Looks at the first bytes of a passage, judges the names in them, and hands the rest to and fro. */
  openTunnel: (client: Connection, first: Buffer, passage: Passage) => void;
  /** Serves HTTP/1 requests, each judged on its own. */
  serveInside: (client: Connection, first: Buffer, inside: HttpInside) => void;
  /** Opens the TLS of a passage and serves what is inside. */
  intercept: (client: Connection, first: Buffer, passage: Passage) => void;
};

/** Limits that protect the proxy from clients that say nothing. */
export const LIMITS = { headBytes: 64 * 1024, helloBytes: 32 * 1024, headMs: 10_000, helloMs: 5000 } as const;
