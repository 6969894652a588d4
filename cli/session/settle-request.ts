import path from "node:path";
import { readConfig } from "../config/read-config.ts";
import { judgeTrust, requireTrust, type TrustQuery } from "../config/trust.ts";
import { type BoxCommand, requestBox } from "../commands/start.ts";
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
  const projectPath = resolvePath(host.cwd) ?? host.cwd;
  const addDirs = options.addDirs.flatMap((typed) => resolvePath(path.resolve(host.cwd, typed)) ?? []);
  const config = await readConfig({ host, projectPath, addDirs });
  if (!options.dryRun) await requireTrust({ host, config, ask });
  const { home, agentboxHome } = host;
  const configured = readConfiguredBox({ config: config.config, home, directory: config.ofProject ? path.join(projectPath, ".agentbox") : agentboxHome });
  const merged = { ...command, options: mergeOptions({ options, config: config.config, projectPath, home }) };
  return { ...requestBox(merged, configured.agent), config, configured, trusted: judgeTrust(host, config).kind !== "untrusted" };
}

