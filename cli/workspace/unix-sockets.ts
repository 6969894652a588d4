import { lstatSync } from "node:fs";
import { BOX_SPEC_PATH, KEEPER_DIR } from "../../policy/box-spec.ts";
import { type Complaint, ConfigError } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import { parseUnixSocket } from "../../policy/proxy-words.ts";
import type { Mount } from "../mount.ts";
import { BOX_SYSTEM } from "./box-paths.ts";
import { isWithin, resolvePath } from "./path-fact.ts";

/** The sockets of the host that a box gets, and what its agent is told of them. */
export type SocketPlan = { mounts: Mount[]; env: Record<string, string>; notices: string[] };

type SocketQuery = {
  /** `allow_unix_sockets` as it was written. */
  words: readonly string[];
  hostEnv: Readonly<Record<string, string | undefined>>;
  platform: NodeJS.Platform;
  /** Sockets of container engines, and AgentBox's own directory: never a box's. */
  engineSockets: readonly string[];
  stateDir: string;
};

/** Where an ssh agent is in the box; the host's path may name a user or a session. */
const BOX_SSH_AGENT = "/run/agentbox-ssh-agent.sock";
/** Docker Desktop and its like hand the Mac's agent into their machine under this name; the Mac's own path means nothing there. */
const DESKTOP_SSH_AGENT = "/run/host-services/ssh-auth.sock";
const ENGINE_NAME = /docker|podman|containerd|crio|buildkit|nerdctl/i;

/**
 * Plans the mounts of exactly the listed sockets. One that is not there is left out with a notice; one that
 * would hand over the host throws ConfigError.
 */
export function planUnixSockets(query: SocketQuery): SocketPlan {
  const plan: SocketPlan = { mounts: [], env: {}, notices: [] };
  const complaints: Complaint[] = [];
  for (const word of new Set(query.words)) {
    const socket = parseUnixSocket(word);
    if (!socket.ok) complaints.push(socket.complaint);
    else if (socket.value.kind === "ssh-agent") addAgent(query, plan, complaints);
    else addSocket({ source: socket.value.path, target: socket.value.path }, query, plan, complaints);
  }
  if (complaints.length > 0) throw new ConfigError(complaints);
  return plan;
}

function addAgent(query: SocketQuery, plan: SocketPlan, complaints: Complaint[]): void {
  if (BOX_SSH_AGENT === plan.env["SSH_AUTH_SOCK"]) return;
  if (query.platform === "darwin") {
    plan.mounts.push({ kind: "bind", source: DESKTOP_SSH_AGENT, target: BOX_SSH_AGENT, readOnly: false });
    plan.env["SSH_AUTH_SOCK"] = BOX_SSH_AGENT;
    return;
  }
  const source = query.hostEnv["SSH_AUTH_SOCK"];
  if (source === undefined || !source.startsWith("/")) {
    plan.notices.push("no ssh agent in the box: SSH_AUTH_SOCK of the host names none");
    return;
  }
  if (addSocket({ source, target: BOX_SSH_AGENT }, query, plan, complaints)) plan.env["SSH_AUTH_SOCK"] = BOX_SSH_AGENT;
}

function addSocket({ source, target }: { source: string; target: string }, query: SocketQuery, plan: SocketPlan, complaints: Complaint[]): boolean {
  const real = resolvePath(source);
  if (real === null || lstatSync(real, { throwIfNoEntry: false })?.isSocket() !== true) {
    plan.notices.push(`${quotePath(source)} is ${real === null ? "not there" : "no socket"}, so the box does not get it`);
    return false;
  }
  const refusal = findRefusal(source, real, target, query);
  if (refusal !== undefined) {
    complaints.push({ what: `${quotePath(source)} ${refusal}`, expected: "a socket that an agent may use", fix: "take it out of allow_unix_sockets" });
    return false;
  }
  plan.mounts.push({ kind: "bind", source: real, target, readOnly: false });
  return true;
}

function findRefusal(source: string, real: string, target: string, { engineSockets, stateDir }: SocketQuery): string | undefined {
  const paths = [source, real];
  if (paths.some((path) => engineSockets.includes(path) || ENGINE_NAME.test(path))) return "is a container engine's, which would give the agent the host";
  const state = resolvePath(stateDir) ?? stateDir;
  if (paths.some((path) => isWithin(path, stateDir) || isWithin(path, state))) return "belongs to AgentBox, whose files no box may see";
  const own = [BOX_SPEC_PATH.slice(0, BOX_SPEC_PATH.lastIndexOf("/")), KEEPER_DIR, ...BOX_SYSTEM.filter((path) => path !== "/run")];
  const hidden = own.find((path) => isWithin(target, path));
  return hidden === undefined ? undefined : `would lie in the box's own ${hidden}`;
}
