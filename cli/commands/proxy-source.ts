import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { addAllowedDomain } from "../../policy/config-edit.ts";
import { ConfigError } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import { type ParsedProxyConfig, parseProxyConfig, type ProxySettings, readProxySettings } from "../../policy/proxy-config.ts";
import { loadPublicSuffixTest } from "../../policy/wildcard-check.ts";
import type { LoadedConfig } from "../../proxy/standalone/loaded-config.ts";
import { type ConfigText, readConfigText } from "../config/config-text.ts";
import { describeConfigFile, editConfig, writeConfigFile } from "../config/edit-config.ts";
import { withPolicyLock } from "../config/exclusive.ts";
import { readConfig, USER_CONFIG_NAME } from "../config/read-config.ts";
import { requireTrust, type TrustQuery } from "../config/trust.ts";
import type { Host } from "../host.ts";
import { readUpstreamLogin } from "../session/proxy-secrets.ts";
import { resolvePath } from "../workspace/path-fact.ts";
import { findProject } from "./project-policy.ts";

/** Where the stand-alone proxy's configuration comes from, and how hosts are added to it. */
export type ProxySource = {
  /** Path of the file that counts now, whatever is in it. */
  locate: () => string;
  /** Reads it as it is now. A project's has to be agreed to: `ask` asks, without it an untrusted one is refused. */
  read: (ask?: TrustQuery["ask"]) => Promise<LoadedConfig>;
  /** Reads it to talk to a proxy that runs by it: nothing is done by it, so nobody has to agree. */
  look: () => Promise<LoadedConfig>;
  /** Adds hosts to allowed_domains in place. Throws ConfigError, and writes nothing, where that is not safe. */
  allow: (hosts: readonly string[]) => Promise<void>;
};

/** The file that `--config` names; else that of the project, else the user's own. */
export function findProxySource(host: Host, file: string | undefined): ProxySource {
  return file === undefined ? sourceOfProject(host) : sourceOfFile(host, file);
}

/** A file that its owner names is agreed to by that. Links are followed: it may be another program's, kept elsewhere. */
function sourceOfFile({ cwd, agentboxHome }: Host, file: string): ProxySource {
  const path = resolve(cwd, file);
  const readText = (): ConfigText => {
    const found = readConfigText({ name: file, path: resolvePath(path) ?? path });
    if (found !== undefined) return found;
    throw new ConfigError({ what: `--config ${quotePath(file)} does not exist`, expected: "a file with a table [network_proxy]", fix: "correct the path" });
  };
  const read = async (): Promise<LoadedConfig> => {
    const text = readText();
    return await load({ main: text, user: undefined, path, watched: [...new Set([path, text.path])] });
  };
  const allow = async (hosts: readonly string[]): Promise<void> =>
    await withPolicyLock(agentboxHome, async () => {
      const { name, path: real, text } = readText();
      await writeEdited({ name, path: real }, text, hosts);
    });
  return { locate: () => path, read, look: read, allow };
}

function sourceOfProject(host: Host): ProxySource {
  const projectPath = findProject(host);
  const readFiles = async (trust: (config: Awaited<ReturnType<typeof readConfig>>) => Promise<void>): Promise<LoadedConfig> => {
    const config = await readConfig({ host, projectPath });
    await trust(config);
    const { project, user } = config.texts;
    const main = project ?? user ?? { name: USER_CONFIG_NAME, path: join(host.agentboxHome, "config.toml"), text: "" };
    return await load({ main, user: project === undefined ? undefined : user, path: main.path, watched: config.watched });
  };
  const ofProject = describeConfigFile(host, projectPath, false).path;
  return {
    locate: () => (existsSync(ofProject) ? ofProject : describeConfigFile(host, projectPath, true).path),
    read: async (ask) => await readFiles(async (config) => await requireTrust({ host, config, ask })),
    look: async () => await readFiles(async () => {}),
    allow: async (hosts) =>
      await withPolicyLock(host.agentboxHome, async () => {
        const config = await readConfig({ host, projectPath });
        if (config.source === undefined) return await writeEdited(describeConfigFile(host, projectPath, true), undefined, hosts);
        await editConfig({ host, config, edit: (text, name) => addHosts(text, hosts, name) });
      }),
  };
}

type Loading = Pick<LoadedConfig, "path" | "watched"> & { main: ConfigText; user: ConfigText | undefined };

async function load({ main, user, path, watched }: Loading): Promise<LoadedConfig> {
  const isPublicSuffix = await loadPublicSuffixTest([main.text, user?.text ?? ""]);
  const parse = ({ name, text }: ConfigText): ParsedProxyConfig => parseProxyConfig({ file: name, text, isPublicSuffix });
  const [parsed, own] = [parse(main), user === undefined ? undefined : parse(user)];
  return { parsed, path, user: own, settings: addLogin(readProxySettings(parsed), parsed, own), isPublicSuffix, watched };
}

/** A project's file may name the site's proxy alone: who this user is to it stands in the user's own. */
function addLogin(settings: ProxySettings, { config }: ParsedProxyConfig, own: ParsedProxyConfig | undefined): ProxySettings {
  const { upstream } = settings;
  const login = own === undefined ? null : readUpstreamLogin({ config: { network_proxy: config }, userConfig: { network_proxy: own.config } });
  return upstream === undefined || login === null ? settings : { ...settings, upstream: { ...upstream, ...login } };
}

async function writeEdited(file: Parameters<typeof writeConfigFile>[0], before: string | undefined, hosts: readonly string[]): Promise<void> {
  const text = addHosts(before ?? "", hosts, file.name);
  const isPublicSuffix = await loadPublicSuffixTest([text]);
  readProxySettings(parseProxyConfig({ file: file.name, text, isPublicSuffix }));
  if (text !== before) await writeConfigFile(file, { before, text });
}

function addHosts(text: string, hosts: readonly string[], name: string): string {
  return hosts.reduce((current, word) => addAllowedDomain(current, word, name), text);
}
