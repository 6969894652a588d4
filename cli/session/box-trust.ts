import type { Authority } from "../../proxy/interception/authority.ts";
import { mergeTrust } from "../../proxy/interception/trust-bundle.ts";
import { EngineError } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import type { Engine } from "../engine/engine.ts";
import { readBoxFile } from "../engine/probe.ts";
import { BOX_CA_BUNDLE } from "../workspace/box-paths.ts";
import { isWithin, resolvePath } from "../workspace/path-fact.ts";
import { readPlainFile } from "../workspace/plain-file.ts";

/** The authority that a box's proxy opens TLS with, and what the agent's programs trust: that, and all they trusted before. */
export type BoxTrust = { authority: Authority; bundle: string; notices: string[] };

export type TrustQuery = {
  engine: Engine;
  image: string;
  /** Bundles that the agent's programs were to trust, by their paths in the box. */
  bundles: readonly string[];
  /** The mounted directories, which have the same paths on the host. */
  roots: readonly { path: string }[];
};

const MAX_BYTES = 8 * 1024 * 1024;

/** Makes the authority of a session. Throws EngineError where the image's own certificates cannot be read. */
export async function makeTrust({ engine, image, bundles, roots }: TrustQuery): Promise<BoxTrust> {
  // Most boxes have none, and what makes certificates is large.
  const { makeAuthority } = await import("../../proxy/interception/authority.ts");
  const [authority, system, ...texts] = await Promise.all([makeAuthority(), readBoxFile(engine, image, BOX_CA_BUNDLE), ...bundles.map(async (file) => readBundle(file, { engine, image, roots }))]);
  if (!system.includes("BEGIN CERTIFICATE")) throw new EngineError({ what: `the image holds no certificates in ${BOX_CA_BUNDLE}`, expected: "Debian's bundle", fix: "run agentbox --rebuild" });
  const lost = bundles.filter((_, index) => !texts[index]?.includes("BEGIN CERTIFICATE"));
  return {
    authority,
    bundle: mergeTrust({ own: authority.certPem, user: texts, system }),
    notices: lost.map((file) => `no certificate can be read from ${quotePath(file)}, which a variable names for the box: programs there will not trust what it holds`),
  };
}

/**
 * Reads a file as the box would see it: a mounted one from the host, else the image's. The path may be the agent's
 * choice, so nothing is read outside what it has anyway, and only certificates come out of this.
 */
async function readBundle(file: string, { engine, image, roots }: Pick<TrustQuery, "engine" | "image" | "roots">): Promise<string> {
  const isMounted = (path: string): boolean => roots.some((root) => isWithin(path, root.path));
  if (!file.startsWith("/")) return "";
  if (!isMounted(file)) return await readBoxFile(engine, image, file);
  const real = resolvePath(file);
  if (real === null || !isMounted(real)) return "";
  const found = readPlainFile(real, MAX_BYTES);
  return "flaw" in found ? "" : found.content.toString("utf8");
}
