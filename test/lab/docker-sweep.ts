import { rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { dirname } from "node:path";
import { z } from "zod";
import type { EngineCommand } from "./docker-command.ts";
import { forgetPodmanBridge } from "./podman-bridge.ts";
import { isAlive, type ProcessIdentity } from "./process-identity.ts";

/** A lab as its labels describe it; `owner` is `lasting` or `HOST:PID:START`. */
export type KnownLab = { name: string; runDirectory: string; owner: string };

const NAME = "agentbox.lab";
const OWNER = "agentbox.lab.owner";
const RUN = "agentbox.lab.run";
const LASTING = "lasting";
const labelsSchema = z.record(z.string(), z.string());

/** The labels of a lab's container and network; without an owner it stays until it is taken down by hand. */
export function labLabels(lab: { name: string; runDirectory: string; owner: ProcessIdentity | undefined }): string[] {
  const owner = lab.owner === undefined ? LASTING : `${hostname()}:${lab.owner.pid}:${lab.owner.start}`;
  return [`${NAME}=${lab.name}`, `${OWNER}=${owner}`, `${RUN}=${lab.runDirectory}`];
}

/** Every lab of which a container or a network is left. */
export async function listLabs(engine: EngineCommand): Promise<KnownLab[]> {
  const filter = ["--filter", `label=${NAME}`];
  const labels = await Promise.all([
    readLabels(engine, ["ps", "--all", ...filter, "--format", "{{.Names}}"], ["container", "inspect", "--format", "{{json .Config.Labels}}"]),
    readLabels(engine, ["network", "ls", ...filter, "--format", "{{.Name}}"], ["network", "inspect", "--format", "{{json .Labels}}"]),
  ]);
  const labs = labels.flat().map((found) => ({ name: found[NAME] ?? "", owner: found[OWNER] ?? "", runDirectory: found[RUN] ?? "" }));
  return [...new Map(labs.map((lab) => [lab.name, lab])).values()];
}

// docker and podman print labels in lists each in a way of its own, but agree on `inspect`. What vanishes
// between the two calls is no error: another lab's start may sweep at the same time.
async function readLabels(engine: EngineCommand, list: readonly string[], inspect: readonly string[]): Promise<Record<string, string>[]> {
  const names = (await engine.run(list)).split("\n").map((line) => line.trim()).filter(Boolean);
  if (names.length === 0) return [];
  const { stdout } = await engine.attempt([...inspect, ...names]);
  return stdout.split("\n").filter(Boolean).map((line) => labelsSchema.parse(JSON.parse(line)));
}

/** Removes the labs whose starter has died, or those that were started to stay; returns their names. */
export async function removeLabs(engine: EngineCommand, which: "abandoned" | "lasting"): Promise<string[]> {
  const labs = (await listLabs(engine)).filter(({ owner }) => (which === "lasting" ? owner === LASTING : isAbandoned(owner)));
  for (const lab of labs) await removeLab(engine, lab);
  return labs.map(({ name }) => name);
}

/** Removes one lab's container, network and run directory; what is gone already is no error. */
export async function removeLab(engine: EngineCommand, { name, runDirectory }: Omit<KnownLab, "owner">): Promise<void> {
  await engine.attempt(["rm", "--force", "--volumes", name]);
  const { stdout } = await engine.attempt(["network", "inspect", "--format", "{{range $id, $_ := .Containers}}{{$id}} {{end}}", name]);
  // A network with a box on it cannot be removed; a box without its internet is of no use to anybody.
  for (const box of stdout.split(/\s+/).filter(Boolean)) await engine.attempt(["network", "disconnect", "--force", name, box]);
  await engine.attempt(["network", "rm", ...(engine.name === "podman" ? ["--force"] : []), name]);
  if (engine.name === "podman") await forgetPodmanBridge(name);
  // A label is only text: nothing outside the folder where run directories are made is deleted for it.
  if (dirname(runDirectory) === tmpdir()) await rm(runDirectory, { recursive: true, force: true });
}

function isAbandoned(owner: string): boolean {
  const [host, pid, start] = owner.split(":");
  if (host !== hostname() || pid === undefined || start === undefined) return false;
  return !isAlive({ pid: Number(pid), start });
}
