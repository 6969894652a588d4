import path from "node:path";
import { type BoxCommand, requestBox } from "../commands/start.ts";
import { readConfig, type SessionConfig } from "../config/read-config.ts";
import { judgeTrust, requireTrust, type TrustQuery } from "../config/trust.ts";
import type { Host } from "../host.ts";
import { resolvePath } from "../workspace/path-fact.ts";
import { mergeOptions, readConfiguredBox } from "./merge-options.ts";
import type { BoxRequest } from "./prepare.ts";

/**
 * Reads the configuration of the project, makes sure that its owner agreed to it, and puts it together with
 * what was typed. A dry run asks for nothing and tells instead. `ask` is undefined where nobody can be asked.
 */
export async function settleRequest(host: Host, command: BoxCommand, ask: TrustQuery["ask"]): Promise<BoxRequest> {
  const { options } = command;
  const { config, directory } = await readTrustedConfig(host, { addDirs: options.addDirs, ask: options.dryRun ? "nobody" : ask });
  const { home } = host;
  const configured = readConfiguredBox({ config: config.config, home, directory });
  const merged = { ...command, options: mergeOptions({ options, config: config.config, projectPath: config.projectPath, home }) };
  return { ...requestBox(merged, configured.agent), config, configured, trusted: judgeTrust(host, config).kind !== "untrusted" };
}

type ConfigQuery = {
  /** As typed. */
  addDirs: readonly string[];
  /** `nobody`: trust is not asked for, since nothing will be done. */
  ask: TrustQuery["ask"] | "nobody";
};

/** Reads the configuration that counts in the working directory, once its owner agreed to it. `directory` is that of the file. */
export async function readTrustedConfig(host: Host, { addDirs, ask }: ConfigQuery): Promise<{ config: SessionConfig; directory: string }> {
  const projectPath = resolvePath(host.cwd) ?? host.cwd;
  const resolved = addDirs.flatMap((typed) => resolvePath(path.resolve(host.cwd, typed)) ?? []);
  const config = await readConfig({ host, projectPath, addDirs: resolved });
  if (ask !== "nobody") await requireTrust({ host, config, ask });
  return { config, directory: config.ofProject ? path.join(projectPath, ".agentbox") : host.agentboxHome };
}
