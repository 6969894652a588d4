import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { resolvePath } from "./path-fact.ts";
import type { HostFacts } from "./root-check.ts";
import { AGENT_STATE_PATHS, SECRET_PATHS } from "./secret-paths.ts";

/** Where engines put their sockets, relative to the home directory. */
const HOME_SOCKETS = [
  ".docker/run/docker.sock",
  ".docker/desktop/docker.sock",
  ".colima/docker.sock",
  ".colima/default/docker.sock",
  ".orbstack/run/docker.sock",
  ".rd/docker.sock",
  ".lima/default/sock/docker.sock",
  ".local/share/containers/podman/machine/podman.sock",
];
const SYSTEM_SOCKETS = [
  "/run/docker.sock",
  "/var/run/docker.sock",
  "/run/podman/podman.sock",
  "/run/containerd/containerd.sock",
  "/run/crio/crio.sock",
  "/run/buildkit/buildkitd.sock",
];
const RUNTIME_SOCKETS = ["docker.sock", "podman/podman.sock", "buildkit/buildkitd.sock", "containerd/containerd.sock"];
const ENGINE_NAME = /docker|podman|containerd|crio|buildkit|nerdctl/i;

type HostQuery = { home: string; stateDir: string; installation: string; env: NodeJS.ProcessEnv; roots: readonly string[] };

/** Reads where the host keeps what a box must not get. */
export function readHostFacts({ home, stateDir, installation, env, roots }: HostQuery): HostFacts {
  const below = (paths: readonly string[]) => paths.map((path) => join(home, path));
  return {
    home: bothWays([home]),
    state: bothWays([stateDir]),
    installation: bothWays([installation]),
    agentState: bothWays(below(AGENT_STATE_PATHS)),
    secrets: bothWays(below(SECRET_PATHS).filter((path) => resolvePath(path) !== null)),
    sockets: [...readEngineSockets({ home, env }), ...roots.flatMap(findSocketsIn)],
  };
}

/** Finds the sockets of container engines where they usually are, by every path that leads to them. */
export function readEngineSockets({ home, env }: Pick<HostQuery, "home" | "env">): string[] {
  return bothWays(listEngineSockets(home, env).filter(isSocket));
}

function listEngineSockets(home: string, env: NodeJS.ProcessEnv): string[] {
  const named = [env["DOCKER_HOST"], env["CONTAINER_HOST"]].flatMap((url) => (url?.startsWith("unix://") ? [url.slice("unix://".length)] : []));
  const runtime = env["XDG_RUNTIME_DIR"];
  return [
    ...named,
    ...SYSTEM_SOCKETS,
    ...HOME_SOCKETS.map((path) => join(home, path)),
    ...(runtime ? RUNTIME_SOCKETS.map((path) => join(runtime, path)) : []),
  ];
}

/** Finds sockets with an engine's name directly in a directory, wherever the engine was told to put them. */
function findSocketsIn(directory: string): string[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isSocket() && ENGINE_NAME.test(entry.name))
      .map((entry) => join(directory, entry.name));
  } catch {
    return [];
  }
}

function isSocket(path: string): boolean {
  const real = resolvePath(path);
  return real !== null && lstatSync(real, { throwIfNoEntry: false })?.isSocket() === true;
}

function bothWays(paths: readonly string[]): string[] {
  return [...new Set(paths.flatMap((path) => [path, resolvePath(path) ?? path]))];
}
