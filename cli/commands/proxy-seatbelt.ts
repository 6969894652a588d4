import { resolve } from "node:path";
import { ConfigError } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import { type ParsedProxyConfig, parseProxyConfig, readProxySettings } from "../../policy/proxy-config.ts";
import { planSeatbelt, renderSeatbeltProfile } from "../../policy/seatbelt-profile.ts";
import { loadPublicSuffixTest } from "../../policy/wildcard-check.ts";
import { type ConfigText, readConfigText } from "../config/config-text.ts";
import { readConfig } from "../config/read-config.ts";
import { requireTrust } from "../config/trust.ts";
import type { Edge } from "../edge.ts";
import type { Host } from "../host.ts";
import { findProject } from "./project-policy.ts";

/** Prints a macOS sandbox profile that leaves the proxy as the only way out. */
export async function printSeatbeltProfile({ host, print, say }: Edge, { file }: { file: string | undefined }): Promise<number> {
  const source = file === undefined ? await findConfig(host) : readNamed(host, file);
  const config: Pick<ParsedProxyConfig, "config" | "placeOf"> = source === undefined ? { config: {}, placeOf: () => ({ file: "" }) } : await parseSource(source);
  const { http, socks, warnings } = readProxySettings(config);
  const { allow_unix_sockets: unixSockets = [], allow_local_binding: localBinding = false } = config.config.policy ?? {};
  const plan = planSeatbelt({ listeners: socks === undefined ? [http] : [http, socks], unixSockets, localBinding, agentSocket: host.env["SSH_AUTH_SOCK"] });
  for (const text of [...warnings, ...plan.notes]) say(text);
  await print(renderSeatbeltProfile(plan));
  return 0;
}

/** The file of the project, else the user's. What a project lists opens sockets of this machine, so its owner has to agree. */
async function findConfig(host: Host): Promise<ConfigText | undefined> {
  const config = await readConfig({ host, projectPath: findProject(host) });
  await requireTrust({ host, config, ask: undefined });
  return config.texts.project ?? config.texts.user;
}

function readNamed(host: Host, file: string): ConfigText {
  const path = resolve(host.cwd, file);
  const found = readConfigText({ name: file, path });
  if (found !== undefined) return found;
  throw new ConfigError({ what: `--config ${quotePath(file)} does not exist`, expected: "a file with a table [network_proxy]", fix: "correct the path" });
}

async function parseSource({ name, text }: ConfigText): Promise<ParsedProxyConfig> {
  return parseProxyConfig({ file: name, text, isPublicSuffix: await loadPublicSuffixTest([text]) });
}
