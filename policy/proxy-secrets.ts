import { z } from "zod";

/**
 * What the proxy of a box has to know and the agent must never: the authority whose certificates it shows when TLS
 * is opened, and who it is to the site's proxy. The command line writes it into the session's log directory,
 * which no agent's container sees and no agent may enter, and removes it when the session ends.
 */
const proxySecretsSchema = z.strictObject({
  version: z.literal(1),
  authority: z.strictObject({ certPem: z.string(), keyPem: z.string() }).nullable(),
  upstream: z.strictObject({ user: z.string(), password: z.string() }).nullable(),
});

export type ProxySecrets = z.infer<typeof proxySecretsSchema>;

/** Name of the file in the log directory. */
export const PROXY_SECRETS_FILE = "proxy-secrets.json";

/** Reads the text of the file; undefined for anything else, which is not repeated. */
export function parseProxySecrets(text: string): ProxySecrets | undefined {
  try {
    return proxySecretsSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
