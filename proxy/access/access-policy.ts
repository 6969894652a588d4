import type { Host } from "../../policy/host-name.ts";
import type { Policy } from "../../policy/policy.ts";
import type { Upstream } from "../../policy/proxy-words.ts";

/** What the listeners judge by: of a box's policy, or of the stand-alone proxy's configuration. */
export type AccessPolicy = {
  /** Counts the policies of this process: whoever keeps something that a policy decided compares it. */
  epoch: number;
  /** False: everything is answered with `proxy_disabled`. */
  enabled: boolean;
  policy: Policy;
  /** Report mode: what no rule allows is let through and written down as such. */
  report: boolean;
  /** TLS is opened, but for the hosts that `passesThrough` names. */
  intercept: boolean;
  passesThrough: (host: Host) => boolean;
  /** A hello that may hide its real name is refused. */
  refuseEch: boolean;
  /** Sizes of intercepted bodies are written down, up to `maxBodyBytes` of each. */
  inspect: boolean;
  maxBodyBytes: number;
  /** The site's proxy that everything leaves through. */
  upstream: Upstream | undefined;
};
