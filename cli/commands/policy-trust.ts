import { readConfig } from "../config/read-config.ts";
import { judgeTrust, renderUntrusted, trustProject } from "../config/trust.ts";
import type { Edge } from "../edge.ts";
import { findProject } from "./project-policy.ts";

/** Agrees to the configuration of the project as it is now, and shows what was agreed to. */
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
  return 0;
}
