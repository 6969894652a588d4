import { spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { sweepNamespaces } from "../../lab/namespace-sweep.ts";

const NAMESPACE = join(import.meta.dirname, "..", "..", "lab", "namespace.ts");

it.skipIf(process.getuid?.() !== 0)("removes what a killed starter left behind, and nothing of a live one (needs root)", { timeout: 120_000 }, async () => {
  const script = `import { startNamespaceLab } from ${JSON.stringify(NAMESPACE)}; const lab = await startNamespaceLab(); console.log(lab.boxNamespace); setInterval(() => {}, 1000);`;
  const starter = spawn(process.execPath, ["--input-type=module-typescript", "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  const box = await new Promise<string>((resolve) => {
    starter.stdout.once("data", (data) => resolve(String(data).trim()));
  });
  const lab = box.replace(/-box0$/, "-lab");
  await sweepNamespaces();
  expect(readdirSync("/run/netns")).toEqual(expect.arrayContaining([box, lab]));

  const ended = new Promise((resolve) => {
    starter.once("close", resolve);
  });
  starter.kill("SIGKILL");
  await ended;
  await sweepNamespaces();
  expect(readdirSync("/run/netns").filter((name) => name === box || name === lab)).toEqual([]);
  expect(existsSync(join("/etc/netns", box))).toBe(false);
});
