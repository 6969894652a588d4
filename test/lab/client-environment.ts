import { dirname } from "node:path";
import type { LabIdentity } from "./state-directory.ts";

/**
 * The environment for clients in the lab: they trust its CA, use its SSH key, and find this Node first.
 * Nothing of the caller's environment leaks in, proxy settings least of all.
 */
export function clientEnvironment({ caFile, sshKeyFile, knownHostsFile }: Pick<LabIdentity, "caFile" | "sshKeyFile" | "knownHostsFile">): Record<string, string> {
  const system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  return {
    PATH: `${dirname(process.execPath)}:${system}`,
    HOME: "/tmp",
    LANG: "C.UTF-8",
    SSL_CERT_FILE: caFile,
    CURL_CA_BUNDLE: caFile,
    GIT_SSL_CAINFO: caFile,
    NODE_EXTRA_CA_CERTS: caFile,
    PIP_CERT: caFile,
    npm_config_update_notifier: "false",
    npm_config_registry: "https://registry.npmjs.org/",
    GIT_TERMINAL_PROMPT: "0",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_SSH_COMMAND: `ssh -i ${quoted(sshKeyFile)} -o IdentitiesOnly=yes -o BatchMode=yes -o UserKnownHostsFile=${quoted(knownHostsFile)}`,
  };
}

// git hands GIT_SSH_COMMAND to a shell.
function quoted(path: string): string {
  return `'${path.replaceAll("'", String.raw`'\''`)}'`;
}
