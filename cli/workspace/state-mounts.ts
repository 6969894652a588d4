import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Mount } from "../mount.ts";
import { BOX_CACHE, BOX_HOME, BOX_LOGIN, BOX_SSH } from "./box-paths.ts";
import { readPathFact } from "./path-fact.ts";

const ID_LENGTH = 12;

/** Names a project of one user: 12 hex digits of its real path and the user's id. */
export function projectId(projectPath: string, uid: number): string {
  return createHash("sha256").update(`${projectPath}\0${uid}`).digest("hex").slice(0, ID_LENGTH);
}

type StateQuery = {
  agent: string;
  /** Real path of the project. */
  projectPath: string;
  /** The host user's id. */
  uid: number;
  /** Directory of the dedicated key, null where `ssh-init` was not run. */
  sshDir: string | null;
};

/**
 * Plans what outlives a box:
 *
 * - settings, history and sessions of the agent: a volume per agent and project at the home directory;
 * - package caches and the shell's history: a volume per project, shared by all agents;
 * - the login: a volume per agent and user, of which only the credential file is linked into the home;
 * - the dedicated SSH key, read-only. The user's own ~/.ssh, ~/.claude or ~/.codex never come in.
 */
export function planStateMounts({ agent, projectPath, uid, sshDir }: StateQuery): Mount[] {
  const project = projectId(projectPath, uid);
  const ssh: Mount[] = sshDir === null ? [] : [{ kind: "bind", source: sshDir, target: BOX_SSH, readOnly: true }];
  return [
    { kind: "volume", name: `agentbox-home-${agent}-${project}`, target: BOX_HOME },
    { kind: "volume", name: `agentbox-cache-${project}`, target: BOX_CACHE },
    { kind: "volume", name: `agentbox-login-${agent}-${uid}`, target: BOX_LOGIN },
    ...ssh,
  ];
}

/** Finds the directory that `ssh-init` made; a link in its place counts as none, since it could lead to the user's own keys. */
export function findSshDirectory(stateDir: string): string | null {
  const path = join(stateDir, "ssh");
  return readPathFact(path).kind === "directory" && readPathFact(join(path, "id_ed25519")).kind === "file" ? path : null;
}
