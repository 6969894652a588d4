import { withPolicyLock } from "../config/exclusive.ts";
import { changeBoxes, findLiveBoxes } from "../config/live-change.ts";
import { readConfig } from "../config/read-config.ts";
import { judgeTrust, renderUntrusted, trustProject } from "../config/trust.ts";
import type { Edge } from "../edge.ts";
import { findProject } from "./project-policy.ts";
import { tell } from "./policy-change.ts";

/** Agrees to the configuration of the project as it is now, shows what was agreed to, and has the running boxes take it. */
export async function trustPolicy({ host, print, say }: Edge): Promise<number> {
  const config = await readConfig({ host, projectPath: findProject(host) });
  if (config.files.length === 0) {
    say(`this project has no configuration of its own${config.source === undefined ? "" : `; ${config.source} counts, and needs no trust`}`);
    return 0;
  }
  const state = judgeTrust(host, config);
  if (state.kind === "untrusted") await print(`${renderUntrusted(state)}\n\n`);
  await trustProject(host, config);
  await print(state.kind === "trusted" ? "It was trusted already.\n" : `Trusted: ${config.files.map(({ name }) => name).join(", ")}\n`);
  return await updateBoxes({ host, print, say });
}

/** Does what each box's own command line would do soon, so that its owner learns of it here. */
async function updateBoxes({ host, print, say }: Edge): Promise<number> {
  const boxes = await findLiveBoxes(host, findProject(host), undefined);
  if (boxes.length === 0) return 0;
  return await withPolicyLock(host.agentboxHome, async () => {
    // What was edited since nobody agreed to.
    const config = await readConfig({ host, projectPath: findProject(host) });
    if (judgeTrust(host, config).kind === "untrusted") {
      say("the file was changed again meanwhile: boxes go on as before; look at it, then run `agentbox policy trust`");
      return 0;
    }
    if (config.mode !== "allowlist") {
      say(`boxes that run keep the network that they have (${config.why}); start them anew`);
      return 0;
    }
    return await tell({ print, say }, await changeBoxes({ host, config, boxes, verify: () => undefined, change: (overlay) => overlay }), { said: `enforces ${config.source ?? "the configuration"}` });
  });
}
