import { X509Certificate } from "node:crypto";
import { dirname, join, resolve } from "node:path";
import { getCACertificates } from "node:tls";
import { OutputError } from "../../policy/errors.ts";
import { openAuthority } from "../../proxy/interception/ca-files.ts";
import { makeInterceptor } from "../../proxy/interception/interceptor.ts";
import { mergeTrust } from "../../proxy/interception/trust-bundle.ts";
import type { DecisionLog } from "../../proxy/log/decision-log.ts";
import type { LoadedConfig } from "../../proxy/standalone/loaded-config.ts";
import type { WebParts } from "../../proxy/web.ts";
import { writeWhole } from "../session/whole-file.ts";
import { errorCode } from "../workspace/path-fact.ts";

export type InterceptionQuery = { loaded: LoadedConfig; directory: string; siteCa: readonly string[]; log: Pick<DecisionLog, "write"> };

/** What opens TLS, and the bundle that programs have to trust instead of the system's. */
export type Interception = { makeIntercept: NonNullable<WebParts["makeIntercept"]>; caBundle: string; made: boolean };

/** Opens the authority of a configuration, or makes it at first use, and writes the bundle of everything that is trusted. Throws KnownError. */
export async function openInterception({ loaded, directory, siteCa, log }: InterceptionQuery): Promise<Interception> {
  const { caCertPath, caKeyPath, http } = loaded.settings;
  const beside = (file: string): string => resolve(dirname(loaded.path), file);
  const certPath = beside(caCertPath);
  const { authority, made } = await openAuthority({ certPath, keyPath: beside(caKeyPath) });
  if (made) log.write({ kind: "event", event: "ca-made", detail: certPath, added: [], removed: [] });
  // A shell that was told of an earlier bundle names our own authority as the site's.
  const own = new X509Certificate(authority.certPem).fingerprint256;
  const site = siteCa.filter((pem) => new X509Certificate(pem).fingerprint256 !== own);
  const caBundle = join(directory, `ca-bundle-${http.address.replaceAll(":", "_")}-${http.port}.pem`);
  await writeBundle(caBundle, mergeTrust({ own: authority.certPem, user: site, system: readRoots() }));
  return { makeIntercept: makeInterceptor({ authority, ca: site.length === 0 ? undefined : site.join("\n") }), caBundle, made };
}

/** The roots that programs of this machine trust; Node's where the system tells none. */
function readRoots(): string {
  const system = getCACertificates("system");
  return (system.length === 0 ? getCACertificates("bundled") : system).join("\n");
}

async function writeBundle(file: string, content: string): Promise<void> {
  try {
    await writeWhole(file, content, { exact: 0o644 });
  } catch (error) {
    throw new OutputError({ what: `the bundle of certificates cannot be written (${errorCode(error)})`, expected: "a directory that you may write", fix: "make room, or correct its permissions", place: { file } }, { cause: error });
  }
}
