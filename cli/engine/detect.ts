import { release } from "node:os";
import { z } from "zod";
import { type Complaint, EngineError } from "../../policy/errors.ts";
import { createEngineClient, type EngineClient, MissingProgram } from "./client.ts";
import { type Engine, type EngineKind, engineKinds } from "./engine.ts";
import { readPodmanOptions } from "./podman-host.ts";

const answerMs = 10_000;

export type DetectOptions = {
  requested: EngineKind | undefined;
  env: Readonly<Record<string, string | undefined>>;
  /** Makes the client of an engine; a test puts its own programs here. */
  createClient?: (program: string) => EngineClient;
  /** Told when the engine used is not the one that the user would expect. */
  warn?: (text: string) => void;
};

/**
 * Finds the engine to use: the one asked for, else Docker, else Podman. Throws EngineError that says
 * of each what is wrong with it and what to do. DOCKER_HOST asks for Docker; a Docker that is merely not
 * installed is passed over silently.
 */
export async function detectEngine(options: DetectOptions): Promise<Engine> {
  const { env, createClient = createEngineClient, warn = () => {} } = options;
  const remote = findRemoteHost(env);
  if (remote !== undefined && options.requested !== "podman") throw new EngineError(remote);
  const requested = options.requested ?? ((env["DOCKER_HOST"] ?? "") === "" ? undefined : "docker");
  const complaints: Complaint[] = [];
  let silent: Complaint | undefined;
  for (const kind of requested === undefined ? engineKinds : [requested]) {
    const answer = await probeEngine(kind, createClient(kind));
    if ("engine" in answer) {
      if (silent !== undefined) warn(`docker did not answer (${silent.what}); ${kind} is used, with its own images, volumes and logins`);
      return answer.engine;
    }
    complaints.push(answer.complaint);
    if (!answer.missing) silent ??= answer.complaint;
  }
  throw new EngineError(complaints);
}

type Answer = { engine: Engine } | { complaint: Complaint; missing: boolean };

async function probeEngine(kind: EngineKind, client: EngineClient): Promise<Answer> {
  try {
    const result = await client.call(["info", "--format", "{{json .}}"], { timeoutMs: answerMs });
    return (await readInfo(client, result.stdout)) ?? { complaint: explainFailure(kind, result.stderr || result.stdout), missing: false };
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return { complaint: error.complaints[0] ?? { what: error.message }, missing: error instanceof MissingProgram };
  }
}

const dockerInfo = z.object({
  ServerVersion: z.string().min(1),
  OSType: z.string(),
  SecurityOptions: z.array(z.string()).nullable(),
  KernelVersion: z.string().optional(),
  OperatingSystem: z.string().optional(),
});

const podmanInfo = z.object({
  host: z.object({
    kernel: z.string().optional(),
    serviceIsRemote: z.boolean().optional(),
    security: z.object({ rootless: z.boolean(), selinuxEnabled: z.boolean() }),
  }),
  version: z.object({ Version: z.string() }),
});

/** A program named docker may be Podman's: what it answers decides, not its name. */
async function readInfo(client: EngineClient, text: string): Promise<Answer | undefined> {
  const json = parseJson(text);
  const podman = podmanInfo.safeParse(json);
  if (podman.success) {
    const { host, version } = podman.data;
    const { rootless, selinuxEnabled } = host.security;
    return { engine: { kind: "podman", client, version: version.Version, rootless, sameKernel: isOwnKernel(host.kernel) && host.serviceIsRemote !== true, selinux: selinuxEnabled, hostOptions: await readPodmanOptions(), defaultNetwork: "podman" } };
  }
  const docker = dockerInfo.safeParse(json);
  if (!docker.success) return undefined;
  if (docker.data.OSType !== "linux") {
    return { complaint: { what: `the engine runs ${docker.data.OSType} containers`, expected: "Linux containers", fix: "switch the engine to Linux containers" }, missing: false };
  }
  const traits = docker.data.SecurityOptions ?? [];
  return {
    engine: {
      kind: "docker",
      client,
      version: docker.data.ServerVersion,
      rootless: traits.some((trait) => trait.startsWith("name=rootless")),
      // Docker Desktop shares a kernel with WSL, yet mounts drives of its own making.
      sameKernel: isOwnKernel(docker.data.KernelVersion) && !/docker desktop/i.test(docker.data.OperatingSystem ?? ""),
      selinux: traits.some((trait) => trait.startsWith("name=selinux")),
      hostOptions: [],
      defaultNetwork: "bridge",
    },
  };
}

function isOwnKernel(version: string | undefined): boolean {
  return process.platform === "linux" && version === release();
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function explainFailure(kind: EngineKind, message: string): Complaint {
  const said = message.split("\n").find((line) => /error|denied|cannot|refused/i.test(line))?.trim() ?? message.trim().slice(0, 200);
  if (/permission denied/i.test(message)) {
    return {
      what: `${kind} is installed, but this user may not talk to it (${said})`,
      expected: "access to the engine's socket",
      fix: `add the user to the group "docker" and log in again (that group is as powerful as root), or use rootless ${kind}`,
    };
  }
  if (/cannot connect|connection refused|no such file|is the docker daemon running|dial unix/i.test(message)) {
    const fix = kind === "docker" ? "start it: `systemctl start docker`, or open Docker Desktop" : "start it: `podman machine start`, or `systemctl --user start podman.socket`";
    return { what: `${kind} is installed, but its engine is not running (${said})`, expected: "a running engine", fix };
  }
  return { what: `${kind} info failed: ${said === "" ? "no answer" : said}`, expected: "a working engine", fix: `see \`${kind} info\`` };
}

/** The project is mounted by its path, so the engine must run on this machine. */
function findRemoteHost(env: DetectOptions["env"]): Complaint | undefined {
  const host = env["DOCKER_HOST"];
  if (host === undefined || host === "" || /^(unix|npipe|fd):/.test(host)) return undefined;
  if (/^tcp:\/\/(127\.|localhost[:/]|\[::1\])/.test(host)) return undefined;
  return {
    what: `DOCKER_HOST names another machine (${host})`,
    expected: "an engine on this machine, since the project is mounted from here",
    fix: "unset DOCKER_HOST, or run agentbox on that machine",
  };
}
