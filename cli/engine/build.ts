import type { Engine } from "./engine.ts";

/** The builder that an engine's client has. */
export type Builder = { kind: "classic" | "buildkit" | "podman"; env: Readonly<Record<string, string>> };

/** Finds the builder: BuildKit where it can use local base images, else the engine's classic one. */
export async function findBuilder(engine: Engine): Promise<Builder> {
  if (engine.kind === "podman") return { kind: "podman", env: {} };
  const [buildx, version] = await Promise.all([
    engine.client.call(["buildx", "inspect"]),
    engine.client.call(["version", "--format", "{{.Client.Version}}"]),
  ]);
  // A builder that is a container of its own sees none of the engine's images.
  if (buildx.exitCode === 0 && /^Driver:\s+docker\s*$/m.test(buildx.stdout)) return { kind: "buildkit", env: { DOCKER_BUILDKIT: "1" } };
  // Clients before 23 have BuildKit built in; later ones have it in the plugin only.
  const major = Number.parseInt(version.stdout, 10);
  if (major < 23) return { kind: "buildkit", env: { DOCKER_BUILDKIT: "1" } };
  return { kind: "classic", env: { DOCKER_BUILDKIT: "0" } };
}

export type BuildPlan = {
  context: string;
  tag: string;
  args: Readonly<Record<string, string>>;
  labels: Readonly<Record<string, string>>;
  /** For a site's proxy that listens on the host's loopback. */
  hostNetwork: boolean;
};

/** Renders the arguments of a build. */
export function renderBuildArgv({ context, tag, args, labels, hostNetwork }: BuildPlan, { kind }: Pick<Builder, "kind">): string[] {
  return [
    "build",
    ...["--tag", tag],
    // A failed step leaves nothing behind.
    "--force-rm",
    ...(kind === "buildkit" ? ["--progress", "plain"] : []),
    // Podman's own format drops what it does not know of a Dockerfile.
    ...(kind === "podman" ? ["--format", "docker", "--pull=never"] : []),
    ...(hostNetwork ? ["--network", "host"] : []),
    ...Object.entries(labels).flatMap(([key, value]) => ["--label", `${key}=${value}`]),
    ...Object.entries(args).flatMap(([key, value]) => ["--build-arg", `${key}=${value}`]),
    context,
  ];
}
