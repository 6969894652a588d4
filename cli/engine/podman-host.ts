import { access, readFile } from "node:fs/promises";

/** Where Podman's own init program lies. */
const ownInits = ["/usr/libexec/podman/catatonit", "/usr/lib/podman/catatonit", "/usr/bin/catatonit", "/usr/local/bin/catatonit"];

/** Programs that do the same job; the static one needs nothing of the image. */
const otherInits = ["/usr/bin/tini-static", "/usr/bin/docker-init", "/usr/bin/tini"];

/**
 * Works out what `podman create` must be told on this host: an init program where its own is not
 * installed, and limits that this user may set. Its defaults are higher than some hosts allow, and no
 * box would start. Empty where Podman's machine is another one.
 */
export async function readPodmanOptions(): Promise<string[]> {
  if (process.platform !== "linux") return [];
  const [own, other, shown] = await Promise.all([findFirst(ownInits), findFirst(otherInits), readFile("/proc/self/limits", "utf8").catch(() => "")]);
  const init = own === undefined && other !== undefined ? ["--init-path", other] : [];
  return [...init, ...renderLimits(shown)];
}

/** `most`: Podman lowers its own limit on processes, and a box may not have more; the box's --pids-limit is lower still. */
const limits = [
  { title: "Max open files", name: "nofile", most: 1_048_576 },
  { title: "Max processes", name: "nproc", most: 32_768 },
] as const;

/** Renders the hard limits of a process, as /proc shows them, as options; a limit that is not shown is left alone. */
export function renderLimits(text: string): string[] {
  return limits.flatMap(({ title, name, most }) => {
    const line = text.split("\n").find((candidate) => candidate.startsWith(title));
    const [, hard] = line?.slice(title.length).trim().split(/\s+/) ?? [];
    if (hard === undefined) return [];
    const value = hard === "unlimited" ? most : Math.min(Number(hard), most);
    return ["--ulimit", `${name}=${value}:${value}`];
  });
}

async function findFirst(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    const found = await access(path).then(
      () => true,
      () => false,
    );
    if (found) return path;
  }
  return undefined;
}
