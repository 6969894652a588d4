import { existsSync, writeFileSync, renameSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { startDockerLab } from "../lab/docker.ts";

// Keeps a lab while the process `--for` lives, and says in the file `--out` where it is. bats has no
// place of its own for a lab: what its set-up starts must also end when bats itself is killed.

const text = { type: "string" } as const;
const { values } = parseArgs({ options: { image: text, engine: text, state: text, for: text, out: text } });
const { image, engine = "docker", state, for: owner, out } = values;
if (image === undefined || owner === undefined || out === undefined) {
  throw new Error("usage: hold-lab.ts --image IMAGE --for PID --out FILE [--engine docker|podman] [--state DIRECTORY]");
}
if (engine !== "docker" && engine !== "podman") throw new Error(`unknown engine ${engine}`);

const ended = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => ended.abort());

await using lab = await startDockerLab({ image, engine, ...(state === undefined ? {} : { stateDirectory: state }) });
const { network, dns, dns6, gateway, gateway6, socket, sshKeyFile, knownHostsFile, container } = lab;
writeFileSync(`${out}.new`, JSON.stringify({ network, dns, dns6, gateway, gateway6, socket, sshKeyFile, knownHostsFile, container }));
renameSync(`${out}.new`, out);
while (!ended.signal.aborted && existsSync(`/proc/${owner}`)) await sleep(500, undefined, { signal: ended.signal }).catch(() => undefined);
