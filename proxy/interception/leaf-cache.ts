import { createPrivateKey, X509Certificate } from "node:crypto";
import type { SecureContext } from "node:tls";
import { ConfigError } from "../../policy/errors.ts";
import { type Host, renderHost } from "../../policy/host-name.ts";
import type { Authority } from "./authority.ts";
import type { Issuer, Validity } from "./issuer.ts";

const HOUR_MS = 3_600_000;
const LIFE_MS = 7 * 24 * HOUR_MS;
/** The clock of a client may be behind. */
const BACKDATED_MS = HOUR_MS;
/** A certificate is made anew this long before its end, so that no client sees it end. */
const RENEWED_MS = 24 * HOUR_MS;
/** Certificates kept; each takes about 20 KB. */
const MAX_KEPT = 500;

type Kept = Validity & { renewAt: number; context: Promise<SecureContext> };

export type LeafCacheParts = {
  authority: Authority;
  /** Is told of each host that a certificate was made for, and until when (Unix ms) that is valid. */
  onIssued: (host: string, until: number) => void;
  maxKept?: number;
};

/**
 * The certificates of intercepted hosts, each made at the first connection and kept; those used longest ago
 * are forgotten. They are made one after the other, so that many new hosts at once leave time for the others.
 */
export class LeafCache {
  private readonly parts: LeafCacheParts;
  private readonly authorityEnd: number;
  private readonly kept = new Map<string, Kept>();
  private issuer: Promise<Issuer> | undefined;
  private turn: Promise<unknown> = Promise.resolve();

  constructor(parts: LeafCacheParts) {
    this.parts = parts;
    const { certPem, keyPem } = parts.authority;
    const certificate = new X509Certificate(certPem);
    if (!certificate.checkPrivateKey(createPrivateKey(keyPem))) throw new Error("the authority's key is not that of its certificate");
    this.authorityEnd = certificate.validToDate.getTime();
  }

  get size(): number {
    return this.kept.size;
  }

  /** What a TLS server shows for a host. Throws ConfigError when the authority's time is over. */
  async contextFor(host: Host): Promise<SecureContext> {
    const name = renderHost(host);
    const now = Date.now();
    const known = this.kept.get(name);
    this.kept.delete(name);
    // Both ends count: a clock that was set back would show what is not valid yet.
    const kept = known !== undefined && known.from <= now && now < known.renewAt ? known : this.make(host, now);
    // Deleted and set again it is the youngest in the order of the map.
    this.kept.set(name, kept);
    this.forgetOldest();
    try {
      return await kept.context;
    } catch (error) {
      if (this.kept.get(name) === kept) this.kept.delete(name);
      throw error;
    }
  }

  private make(host: Host, now: number): Kept {
    if (now >= this.authorityEnd) throw new ConfigError({ what: `the authority for interception is valid until ${new Date(this.authorityEnd).toISOString()} only`, fix: "start the box anew, or remove the two files of the authority so that the proxy makes a new one" });
    const validity = { from: now - BACKDATED_MS, until: Math.min(now + LIFE_MS, this.authorityEnd) };
    // One that ends with its authority cannot be bettered.
    const renewAt = validity.until === this.authorityEnd ? validity.until : validity.until - RENEWED_MS;
    const context = this.turn.then(() => this.issue(host, validity));
    this.turn = context.catch(() => undefined);
    return { ...validity, renewAt, context };
  }

  private async issue(host: Host, validity: Validity): Promise<SecureContext> {
    // Loaded late: a proxy that never intercepts needs none of it.
    this.issuer ??= import("./authority.ts").then(({ openIssuer }) => openIssuer(this.parts.authority));
    const context = await (await this.issuer).issue(host, validity);
    this.parts.onIssued(renderHost(host), validity.until);
    return context;
  }

  private forgetOldest(): void {
    const [oldest] = this.kept.keys();
    if (oldest !== undefined && this.kept.size > (this.parts.maxKept ?? MAX_KEPT)) this.kept.delete(oldest);
  }
}
