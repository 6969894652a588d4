import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import { runHostCommand, type HostRunner } from "../environment/host-command.ts";
import { BOX_CACHE, BOX_SSH } from "./box-paths.ts";
import { errorCode, readPathFact } from "./path-fact.ts";

const KEY = "id_ed25519";

/**
 * Host keys as their owners publish them (docs.github.com and docs.gitlab.com, read 2026-11); the
 * fingerprints are SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU and
 * SHA256:eUXGGm1YGsMAS7vkcx6JOJdOGHPem5gQp4taiCfCLB8.
 */
const KNOWN_HOSTS = [
  "github.com,[ssh.github.com]:443 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl",
  "gitlab.com,[altssh.gitlab.com]:443 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAfuCHKVTjquxvt6CM6tdG4SLp1Btn/nOeHHE5UOzRdf",
];

/** Keys of further hosts are learned into the cache of the project, since this directory is read-only in a box. */
const CLIENT_CONFIG = `# Used by ssh in a box. Yours to change; agentbox writes it once.
Host *
  IdentityFile ${BOX_SSH}/${KEY}
  IdentitiesOnly yes
  UserKnownHostsFile ${BOX_CACHE}/ssh_known_hosts ${BOX_SSH}/known_hosts
  StrictHostKeyChecking accept-new
`;

export type SshKey = { directory: string; publicKey: string; created: boolean };
type SshKeyQuery = {
  stateDir: string;
  /** Ends the public key's line, so that its owner recognises it in a list of keys. */
  comment: string;
  run?: HostRunner;
};

/**
 * Makes the key that boxes use, without a passphrase: an agent cannot type one. Nothing that is there
 * already is overwritten, so a second run shows the key and adds what is missing.
 */
export async function initSshKey({ stateDir, comment, run = runHostCommand }: SshKeyQuery): Promise<SshKey> {
  const directory = join(stateDir, "ssh");
  const key = join(directory, KEY);
  makeDirectory(stateDir);
  makeDirectory(directory);
  const found = readPathFact(key);
  if (found.kind !== "missing" && found.kind !== "file") throw refuse(key, "is not a plain file", "remove it");
  if (found.kind === "missing") await makeKey({ run, key, comment });
  chmodSync(key, 0o600);
  if (readPathFact(`${key}.pub`).kind === "missing") await derivePublicKey(run, key);
  writeOnce(join(directory, "known_hosts"), `${KNOWN_HOSTS.join("\n")}\n`);
  writeOnce(join(directory, "config"), CLIENT_CONFIG);
  return { directory, publicKey: readFileSync(`${key}.pub`, "utf8").trim(), created: found.kind === "missing" };
}

async function makeKey({ run, key, comment }: { run: HostRunner; key: string; comment: string }): Promise<void> {
  const { exitCode, stderr } = await run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", key]);
  if (exitCode !== 0) throw refuse(key, `could not be made by ssh-keygen: ${stderr.trim()}`, "install the OpenSSH client, then run agentbox ssh-init again");
}

async function derivePublicKey(run: HostRunner, key: string): Promise<void> {
  const { exitCode, stdout, stderr } = await run(["ssh-keygen", "-y", "-P", "", "-f", key]);
  if (exitCode !== 0) throw refuse(key, `is not a key without a passphrase: ${stderr.trim()}`, "remove it, then run agentbox ssh-init again");
  writeOnce(`${key}.pub`, stdout);
}

function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw refuse(path, `cannot be made (${errorCode(error)})`, "correct its permissions");
  }
  if (readPathFact(path).kind !== "directory") throw refuse(path, "is a link", "replace it by a directory");
  chmodSync(path, 0o700);
}

function writeOnce(path: string, text: string): void {
  if (readPathFact(path).kind === "missing") writeFileSync(path, text, { flag: "wx", mode: 0o600 });
}

function refuse(file: string, what: string, fix: string): ConfigError {
  return new ConfigError({ what: `${quotePath(file)} ${what}`, expected: "the directory of the key that boxes use", fix });
}
