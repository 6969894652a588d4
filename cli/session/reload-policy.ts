import { ConfigError } from "../../policy/errors.ts";
import { withPolicyLock } from "../config/exclusive.ts";
import { readOverlay } from "../config/overlay.ts";
import { readConfig, type SessionConfig } from "../config/read-config.ts";
import { requireTrust } from "../config/trust.ts";
import { findTrustStore } from "../config/trust-store.ts";
import type { Host } from "../host.ts";
import { readBoxPolicy } from "./allowlist.ts";
import { sendControl } from "./control.ts";
import { withEnforcement } from "./enforcement.ts";
import type { SettledBox } from "./plan-box.ts";
import { renderPolicyTexts } from "./policy-texts.ts";
import type { BoxRequest } from "./prepare.ts";
import type { Session } from "./session.ts";
import { watchConfig } from "./session-config-watch.ts";
import { writeSessionStatus } from "./session-status.ts";
import { writePolicyTexts } from "./visible-directory.ts";

export type Reloading = { host: Host; request: BoxRequest; planned: SettledBox; session: Session };

/** Keeps a running box at what its configuration says. Does nothing for one without a firewall. Returns how to stop. */
export function followConfig(reloading: Reloading): () => Promise<void> {
  const { request, planned: { network }, session } = reloading;
  if (!network.firewall || network.mode === "none") return async () => {};
  let { config } = request;
  return watchConfig({
    // A file that was refused is taken once its owner agrees to it.
    list: () => [...config.watched, findTrustStore(reloading.host.agentboxHome)],
    reload: async () => {
      config = await withPolicyLock(reloading.host.agentboxHome, async () => await reloadPolicy(reloading));
    },
    tell: async (troubles) => await writeSessionStatus(session.directory, troubles),
  });
}

/**
 * Reads the configuration anew and has the box take it, with what was allowed and denied for the session.
 * Throws, and changes nothing, for a file that is broken or not trusted, and for a policy that the box refuses.
 */
async function reloadPolicy({ host, request, planned, session }: Reloading): Promise<SessionConfig> {
  const { topology, engine, workspace, document: { agent } } = planned;
  const addDirs = workspace.roots.flatMap(({ path, role }) => (role === "added" ? [path] : []));
  const config = await readConfig({ host, projectPath: workspace.project, addDirs });
  // The terminal is the agent's: nobody can be asked.
  await requireTrust({ host, config, ask: undefined });
  requireSameNetwork(config, request.config);
  const document = withEnforcement(config.document(agent, readOverlay(session.directory)), request.options.enforcement);
  const policy = await readBoxPolicy(host.root, document);
  // The texts are made while the box works.
  const [reply, texts] = await Promise.all([
    sendControl(engine, { container: session.record.holder ?? session.record.container }, { op: "replace", document }),
    Promise.resolve(renderPolicyTexts({ policy, mode: "allowlist", topology, agent: request.profile.name })),
  ]);
  if (!reply.ok) throw new ConfigError(reply.complaints);
  await writePolicyTexts(session.box.directory, texts);
  return config;
}

/** A box that runs has its network or has none; that cannot be changed under it. */
function requireSameNetwork(config: SessionConfig, before: SessionConfig): void {
  if (config.mode === before.mode || config.mode === "allowlist") return;
  throw new ConfigError({ what: `the configuration now wants another network (${config.why}), and a running box keeps its own`, expected: "a policy for the network that the box has", fix: "start the box anew" });
}
