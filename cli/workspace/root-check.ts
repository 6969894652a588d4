import { join } from "node:path";
import type { Complaint } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import { BOX_OWN, BOX_SYSTEM, BOX_SYSTEM_EXCEPTIONS } from "./box-paths.ts";
import { isWithin } from "./path-fact.ts";
import { describeRoot, type Root } from "./roots.ts";
import { SECRET_NAMES } from "./secret-paths.ts";

/** What the checks know about the host; every path both as written and with its links resolved. */
export type HostFacts = {
  home: readonly string[];
  /** AgentBox's own directory, which no box may see. */
  state: readonly string[];
  /** Where AgentBox itself is installed. */
  installation: readonly string[];
  /** State of agents on the host. */
  agentState: readonly string[];
  /** Keys and tokens that exist. */
  secrets: readonly string[];
  /** Sockets of container engines that exist. */
  sockets: readonly string[];
};

/** Says why a directory must not be mounted writable into a box; no complaint means that it may. */
export function checkRoot(root: Root, host: HostFacts, { yesSecrets }: { yesSecrets: boolean }): Complaint[] {
  const refusal = findRefusal(root.path, host);
  if (refusal !== null) {
    return [{ what: `${describeRoot(root)} ${refusal}`, expected: "a directory that holds one project", fix: chooseFix(root) }];
  }
  const secret = findSecret(root.path, host);
  if (secret === null || yesSecrets) return [];
  return [
    {
      what: `${describeRoot(root)} holds or belongs to ${quotePath(secret)}, where keys or tokens are kept`,
      expected: "a directory without secrets",
      fix: "choose another directory, or add --yes-secrets to show it to the agent",
    },
  ];
}

function findRefusal(path: string, host: HostFacts): string | null {
  if (path === "/") return "is the root of the file system";
  if (host.home.includes(path)) return "is your home directory";
  const state = host.state.find((own) => isWithin(own, path));
  if (state !== undefined) return `holds AgentBox's own directory ${quotePath(state)}`;
  if (host.state.some((own) => isWithin(path, own))) return "belongs to AgentBox, whose files no box may see";
  // Its launcher, program and allowlists decide about the next start; a box that could write them would decide itself.
  if (host.installation.some((own) => isWithin(own, path) || isWithin(path, own))) return "holds or belongs to the installation of AgentBox that is running";
  const agent = host.agentState.find((own) => isWithin(path, own));
  if (agent !== undefined) return `belongs to ${quotePath(agent)}, the state of an agent on the host`;
  const socket = host.sockets.find((one) => isWithin(one, path));
  if (socket !== undefined) return `holds the engine socket ${quotePath(socket)}, which would give the agent the host`;
  return findBoxConflict(path);
}

function findBoxConflict(path: string): string | null {
  const hidden = BOX_OWN.find((own) => isWithin(own, path));
  if (hidden !== undefined) return `would hide the box's own ${hidden}`;
  if (BOX_SYSTEM_EXCEPTIONS.some((allowed) => isWithin(path, allowed))) return null;
  const system = BOX_SYSTEM.find((own) => isWithin(path, own));
  return system === undefined ? null : `lies in the system directory ${system}`;
}

function findSecret(path: string, host: HostFacts): string | null {
  const known = host.secrets.find((secret) => isWithin(secret, path) || isWithin(path, secret));
  if (known !== undefined) return known;
  const names = path.split("/");
  const at = names.findIndex((name) => SECRET_NAMES.has(name));
  return at === -1 ? null : join("/", ...names.slice(0, at + 1));
}

function chooseFix({ role }: Root): string {
  if (role === "project") return "start in the directory of the project";
  return role === "added" ? "add the directories that the agent needs, one by one" : "move the repository to a directory of its own";
}
