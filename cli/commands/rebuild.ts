import type { Command } from "../args.ts";
import { detectEngine } from "../engine/detect.ts";
import type { Host } from "../host.ts";
import { ensureImage } from "../image/ensure-image.ts";
import { changeImageSettings, readImageSettings, writeImageSettings } from "../image/settings.ts";
import { checkAllowlists } from "../session/allowlist.ts";
import { makePrivateDirectory } from "../session/home.ts";
import { listenForSignals } from "../session/interruption.ts";
import type { BoxEdge } from "../session/plan-box.ts";
import { chooseUser } from "../session/box-user.ts";
import { type ConfiguredBox, leaveTyped, readConfiguredBox } from "../session/merge-options.ts";
import { readTrustedConfig } from "../session/settle-request.ts";
import { reportStep } from "../ui/report.ts";
import { readSite } from "./site.ts";

/** Builds the image anew with the newest agents, and remembers what it holds. Starts nothing. */
export async function rebuild({ host, screen }: BoxEdge, { agent, options }: Extract<Command, { verb: "rebuild" }>): Promise<string> {
  const interruption = listenForSignals();
  const { report } = screen;
  try {
    const engine = await reportStep(report, "engine", async () => {
      const found = await detectEngine({ requested: options.engine, env: host.env, warn: (text) => report({ event: "warning", step: "engine", text }) });
      return [found, `${found.kind} ${found.version}`];
    });
    const { agentboxHome, root } = host;
    await checkAllowlists(root);
    await makePrivateDirectory(agentboxHome);
    const configured = await readBuild(host);
    const toRemember = changeImageSettings(await readImageSettings(agentboxHome), { wish: options.image, agent, epoch: new Date().toISOString() });
    const settings = changeImageSettings(toRemember, { wish: leaveTyped(options.image, configured.image), agent, epoch: undefined });
    const site = readSite(host, settings.caFile, configured.proxy);
    for (const text of site.notices) report({ event: "warning", step: "", text });
    const user = chooseUser(host, engine);
    // A pull is quick when nothing is new; a base made here takes long, and is made anew when it is asked for.
    const renewBase = settings.base !== "local" || options.image.base === "local";
    const tag = await reportStep(report, "image", async () => {
      const { certificates, proxy } = site;
      const built = await ensureImage({ engine, root, agentboxHome, settings, certificates, user, rebuild: true, renewBase, proxy, report, signal: interruption.first });
      return [built.tag, `${built.tag}, built with ${settings.agents.length === 0 ? "no agents" : settings.agents.join(", ")}`];
    });
    await writeImageSettings(agentboxHome, toRemember);
    return `${tag} is ready; start it with: AGENTBOX_FIREWALL=1 agentbox`;
  } finally {
    await screen.close();
    interruption.close();
  }
}

/** What the configuration of the directory that one stands in says about the image: its boxes use the very image that is built here. */
async function readBuild(host: Host): Promise<ConfiguredBox> {
  const { config, directory } = await readTrustedConfig(host, { addDirs: [], ask: undefined });
  return readConfiguredBox({ config: config.config, home: host.home, directory });
}
