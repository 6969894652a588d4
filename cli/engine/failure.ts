import { type Complaint, EngineError } from "../../policy/errors.ts";
import type { Engine } from "./engine.ts";

type KnownCause = { pattern: RegExp; fix: string };

/** What engines say when a container cannot be made or started, and what helps. */
const knownCauses: readonly KnownCause[] = [
  { pattern: /port is already allocated|address already in use/i, fix: "choose another port for -p, or end the program that uses this one" },
  { pattern: /cannot assign requested address/i, fix: "the address given to -p is not one of this machine" },
  { pattern: /docker-init|catatonit|init binary/i, fix: "install the engine's init program (docker-init or tini; catatonit for podman)" },
  { pattern: /seccomp/i, fix: "update the engine: it must support seccomp profiles" },
  { pattern: /no such image|image not known/i, fix: "run `agentbox --rebuild`" },
  { pattern: /bind source path does not exist|mounts denied|not shared/i, fix: "share the directory with the engine (Docker Desktop: Settings, Resources, File sharing)" },
  { pattern: /no space left/i, fix: "free disk space: `agentbox cleanup`, then the engine's own `system prune`" },
  { pattern: /setting rlimit/i, fix: "raise the limits of this shell (ulimit -Hn, ulimit -Hu), or start the engine as a service" },
  { pattern: /sysctl.*disable_ipv6/i, fix: "the engine may not set net.ipv6.conf.all.disable_ipv6; use a network with IPv6, or a newer engine" },
  { pattern: /sysctl/i, fix: "the engine may not set what the box's own resolver needs; use a newer engine" },
  { pattern: /operation not permitted|permission denied/i, fix: "the engine withholds a right that the box needs; `agentbox doctor` says which" },
];

/** Turns what the engine said about a container that it did not make or start into an error with its remedy. */
export function explainContainerFailure(engine: Pick<Engine, "kind">, message: string): EngineError {
  const said = cleanMessage(message);
  const fix = knownCauses.find(({ pattern }) => pattern.test(message))?.fix ?? "run `agentbox doctor`";
  const complaint: Complaint = { what: `${engine.kind} did not start the box: ${said}`, fix };
  return new EngineError(complaint);
}

function cleanMessage(message: string): string {
  const lines = message
    .split("\n")
    .map((line) => line.replace(/^Error response from daemon: |^Error: /, "").trim())
    .filter((line) => line !== "" && !/^Error: failed to start containers|^failed to start containers|--help/.test(line));
  return lines.join(" ") || "it gave no reason";
}
