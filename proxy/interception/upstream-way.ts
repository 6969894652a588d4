import type { SecureContext } from "node:tls";
import type { Admitted } from "../access/access.ts";
import type { Connection } from "../net/connection.ts";
import type { OpenUpstream, Passage, WebContext } from "../web-context.ts";
import { holdForTls } from "./client-tls.ts";
import { dialledOf, type Encrypted, encryptUpstream, type Protocols } from "./upstream-tls.ts";

/** The way from one intercepted client to the host that it asked for, always verified. */
export class UpstreamWay {
  private readonly context: WebContext;
  private readonly trust: SecureContext;
  /** Dialled when the client was told that its tunnel is there. */
  private spare: Connection | undefined;

  constructor(context: WebContext, trust: SecureContext, { upstream }: Passage) {
    this.context = context;
    this.trust = trust;
    this.spare = upstream;
    if (upstream !== undefined) holdForTls(upstream);
  }

  /** Opens a connection for HTTP/1.1. */
  readonly open: OpenUpstream = async (admitted) => dialledOf(await this.encrypt(admitted, ["http/1.1"]));

  /** Opens a connection for one of these protocols. */
  async encrypt(admitted: Admitted, protocols: Protocols): Promise<Encrypted> {
    const parts = { host: admitted.host, protocols, trust: this.trust };
    const spare = this.takeSpare(admitted);
    if (spare !== undefined) {
      const encrypted = await encryptUpstream(spare, parts);
      // Servers close what nobody speaks on: where this one said nothing at all, a new connection is as good.
      if (encrypted.ok || !encrypted.silent) return encrypted;
    }
    const dialled = await this.context.dialler.dial(admitted, this.context.access.policy.upstream);
    return dialled.ok ? await encryptUpstream(dialled.connection, parts) : dialled;
  }

  /** The client is gone: what it did not use is closed. */
  close(): void {
    this.spare?.destroy();
    this.spare = undefined;
  }

  /** Only to where the name leads by now; behind the site's proxy nobody knows. */
  private takeSpare({ addresses }: Admitted): Connection | undefined {
    const { spare } = this;
    this.spare = undefined;
    if (spare === undefined || spare.isClosed) return undefined;
    if (addresses.length === 0 || addresses.some(({ text }) => text === spare.socket.remoteAddress)) return spare;
    spare.destroy();
    return undefined;
  }
}
