import type { Engine } from "./engine.ts";
import { firewallCapabilities } from "./security.ts";

/** Commands that make one harmless object in a network namespace of their own. */
const probes = {
  ipset: ["ipset", "create", "agentbox-probe", "hash:net,port"],
  nft: ["nft", "add", "table", "inet", "agentbox-probe"],
} as const;

/** Reads a file of a box on the engine's default network, as the engine wrote it for the box; empty where it cannot be read. */
export async function readBoxFile(engine: Engine, image: string, file: string): Promise<string> {
  const argv = ["run", "--rm", "--pull", "never", "--cap-drop", "ALL", "--entrypoint", "/usr/bin/cat", image, file];
  const result = await engine.client.call(argv, { timeoutMs: 30_000 });
  return result.exitCode === 0 ? result.stdout : "";
}

/** Tells whether a box of this engine can program the kernel by `tool`; the box has no network and is removed at once. */
export async function canProgram(engine: Engine, image: string, tool: keyof typeof probes): Promise<boolean> {
  const [program, ...args] = probes[tool];
  const capabilities = firewallCapabilities.flatMap((capability) => ["--cap-add", capability]);
  const argv = ["run", "--rm", "--pull", "never", "--network", "none", "--cap-drop", "ALL", ...capabilities, "--entrypoint", program, image, ...args];
  const result = await engine.client.call(argv, { timeoutMs: 30_000 });
  return result.exitCode === 0;
}
