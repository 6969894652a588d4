import { ensureImage } from "../image/ensure-image.ts";
import { writeImageSettings } from "../image/settings.ts";
import { reportStep } from "../ui/report.ts";
import { askEngineResolvers } from "./engine-resolvers.ts";
import { makePrivateDirectory } from "./home.ts";
import { holdBox } from "./hold-box.ts";
import { type Interruption, listenForSignals } from "./interruption.ts";
import { type BoxEdge, planBox, type PlannedBox } from "./plan-box.ts";
import type { BoxRequest } from "./prepare.ts";

/** Runs one box from nothing to nothing, and returns the exit code of what ran in it. */
export async function runBox({ host, screen }: BoxEdge, request: BoxRequest): Promise<number> {
  const interruption = listenForSignals();
  try {
    await makePrivateDirectory(host.agentboxHome);
    const planned = await planBox(host, request, screen);
    for (const text of planned.notices) screen.report({ event: "warning", step: "", text });
    interruption.first.throwIfAborted();
    const image = await provideImage({ host, screen }, planned, interruption);
    const upstreams = planned.upstreams === "ask-engine" ? await askEngineResolvers(planned.engine, image, host.agentboxHome) : planned.upstreams;
    return await holdBox({ host, screen, request, planned: { ...planned, upstreams }, image, interruption });
  } finally {
    await screen.close();
    interruption.close();
  }
}

async function provideImage({ host, screen }: BoxEdge, planned: PlannedBox, interruption: Interruption): Promise<string> {
  const { engine, settings, certificates, user, proxy } = planned;
  const { root, agentboxHome } = host;
  const tag = await reportStep(screen.report, "image", async () => {
    const image = await ensureImage({ engine, root, agentboxHome, settings, certificates, user, rebuild: false, renewBase: false, proxy, report: screen.report, signal: interruption.first });
    return [image.tag, `${image.tag}${image.built ? ", built" : ""}`];
  });
  if (planned.toRemember !== undefined) await writeImageSettings(agentboxHome, planned.toRemember);
  return tag;
}
