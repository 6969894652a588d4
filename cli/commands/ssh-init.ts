import { hostname } from "node:os";
import type { Host } from "../host.ts";
import { makePrivateDirectory } from "../session/home.ts";
import { initSshKey } from "../workspace/ssh-key.ts";

/** Makes the key that boxes use, unless there is one, and returns what to do with it. */
export async function initSsh({ agentboxHome }: Host): Promise<string> {
  await makePrivateDirectory(agentboxHome);
  const { directory, publicKey, created } = await initSshKey({ stateDir: agentboxHome, comment: `agentbox@${hostname()}` });
  const state = created ? `A new key lies in ${directory}.` : `There is a key in ${directory} already; it was not changed.`;
  return `${state}\nGive its public half to the Git hosts that boxes may use:\n\n${publicKey.trim()}\n`;
}
