import type { SecureContext } from "node:tls";
import { KnownError } from "../../policy/errors.ts";
import { judgeUnreadable } from "../access/judgement.ts";
import { Connection } from "../net/connection.ts";
import type { Passage, WebContext } from "../web-context.ts";
import type { Authority } from "./authority.ts";
import { CertificateLog } from "./certificate-log.ts";
import { acceptTls, holdForTls } from "./client-tls.ts";
import { serveHttp2 } from "./http2-leg.ts";
import { LeafCache } from "./leaf-cache.ts";
import { makeTrust } from "./upstream-tls.ts";
import { UpstreamWay } from "./upstream-way.ts";

export type InterceptorParts = {
  authority: Authority;
  /** PEM of the site's own authorities, trusted beside the system's. */
  ca?: string | undefined;
};

type Shared = { context: WebContext; leaves: LeafCache; log: CertificateLog; trust: SecureContext };

const NOTHING = Buffer.alloc(0);

/** Makes what opens the TLS of a passage, with certificates of the authority, and serves what is inside. */
export function makeInterceptor({ authority, ca }: InterceptorParts): (context: WebContext) => WebContext["intercept"] {
  const trust = makeTrust(ca);
  return (context) => {
    const log = new CertificateLog(context.access.log);
    const leaves = new LeafCache({ authority, onIssued: (host, until) => log.writeIssued(host, until) });
    const shared: Shared = { context, leaves, log, trust };
    return (client, first, passage) => void intercept(shared, { client, first, passage });
  };
}

async function intercept({ context, leaves, log, trust }: Shared, { client, first, passage }: { client: Connection; first: Buffer; passage: Passage }): Promise<void> {
  const { asked, admitted } = passage;
  if (client.isClosed) {
    passage.upstream?.destroy();
    return;
  }
  holdForTls(client);
  const way = new UpstreamWay(context, trust, passage);
  // Of a client that is denied its host not even an idle connection is left; what it carries its requests tell.
  const flow = context.flows.begin({ asked, admitted, cut: () => client.destroy(true) });
  client.socket.once("close", () => {
    flow.forget();
    way.close();
  });
  const secureContext = await leaves.contextFor(admitted.host).catch((error: unknown) => refuse(context, { client, passage }, error));
  if (secureContext === undefined) return;
  const tls = await acceptTls(client, { first, secureContext, onRefused: (alert) => log.writeRefused(admitted.name, alert) });
  if (tls === undefined) return;
  if (tls.alpnProtocol === "h2") serveHttp2(tls, { context, passage, way });
  else context.serveInside(new Connection({ socket: tls }), NOTHING, { scheme: "https", port: admitted.port, host: admitted.name, protocol: asked.protocol, client: asked.client, openUpstream: way.open });
}

/** What cannot be opened is not let through unopened. */
function refuse({ access }: WebContext, { client, passage: { asked, admitted } }: { client: Connection; passage: Passage }, error: unknown): undefined {
  client.destroy(true);
  if (!(error instanceof KnownError)) throw error;
  access.refuse(asked, { ...judgeUnreadable(admitted.name, admitted.port, error.message), reason: "proxy_disabled" }, admitted.addresses);
  return undefined;
}
