import { join, resolve } from "node:path";
import type { AllowPlace } from "../../policy/allow-command.ts";
import type { Host } from "../host.ts";

/** Where the running proxies of this user keep their tokens, and their log unless another directory is named. */
export function findProxyDirectory(agentboxHome: string): string {
  return join(agentboxHome, "proxy");
}

/** What a hint tells to do about a stand-alone proxy; `file` is what `--config` names, and works from any directory afterwards. */
export function describePlace({ cwd }: Pick<Host, "cwd">, file: string | undefined): AllowPlace {
  const named = file === undefined ? "" : ` --config ${quoteForShell(resolve(cwd, file))}`;
  return { command: `agentbox proxy ctl${named} allow`, hosts: "allowed_domains", ranges: "allow_private of [network_proxy.policy]", who: "clients of this proxy", privateHosts: false };
}

function quoteForShell(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
