import { expect, test } from "vitest";
import { type EngineClient, type EngineResult, MissingProgram } from "../../../../cli/engine/client.ts";
import { detectEngine } from "../../../../cli/engine/detect.ts";
import { EngineError } from "../../../../policy/errors.ts";

type Answers = Readonly<Record<string, EngineResult | EngineError>>;

const missing = new MissingProgram({ what: "not installed", fix: "install it" });
const docker = answer({ ServerVersion: "28.0.1", OSType: "linux", SecurityOptions: ["name=seccomp,profile=default"] });
const podman = answer({ host: { security: { rootless: true, selinuxEnabled: true } }, version: { Version: "5.0.0" } });

function answer(info: unknown): EngineResult {
  return { exitCode: 0, stdout: JSON.stringify(info), stderr: "" };
}

function refuse(stderr: string): EngineResult {
  return { exitCode: 1, stdout: "", stderr };
}

function detect(answers: Answers, options: { requested?: "docker" | "podman"; env?: Record<string, string>; warn?: (text: string) => void } = {}): ReturnType<typeof detectEngine> {
  const createClient = (program: string): EngineClient => ({
    program,
    call: async () => {
      const given = answers[program] ?? missing;
      if (given instanceof EngineError) throw given;
      return await Promise.resolve(given);
    },
    inherit: () => Promise.reject(new Error("not used")),
    pipe: () => {
      throw new Error("not used");
    },
  });
  return detectEngine({ requested: options.requested, env: options.env ?? {}, createClient, ...(options.warn === undefined ? {} : { warn: options.warn }) });
}

test("takes Docker when both answer", async () => {
  expect(await detect({ docker, podman })).toMatchObject({ kind: "docker", version: "28.0.1", rootless: false, defaultNetwork: "bridge" });
});

test("takes Podman when Docker is missing", async () => {
  expect(await detect({ podman })).toMatchObject({ kind: "podman", rootless: true, selinux: true, defaultNetwork: "podman" });
});

test("sees that a program named docker is Podman", async () => {
  expect(await detect({ docker: podman })).toMatchObject({ kind: "podman" });
});

test("sees that Docker is rootless", async () => {
  expect(await detect({ docker: answer({ ServerVersion: "28.0.1", OSType: "linux", SecurityOptions: ["name=rootless"] }) })).toMatchObject({ rootless: true });
});

test("an engine that was asked for is not replaced by another", async () => {
  await expect(detect({ docker }, { requested: "podman" })).rejects.toThrow(/not installed/);
});

test.each([
  { name: "a socket that may not be opened", answers: { docker: refuse("permission denied while trying to connect to the Docker daemon socket") }, said: /group "docker"/ },
  { name: "a daemon that is down", answers: { docker: refuse("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?") }, said: /systemctl start docker/ },
  { name: "an answer that is none", answers: { docker: { exitCode: 0, stdout: "hello", stderr: "" } }, said: /docker info failed: hello/ },
  { name: "Windows containers", answers: { docker: answer({ ServerVersion: "1", OSType: "windows", SecurityOptions: null }) }, said: /Linux containers/ },
])("tells $name apart, with the remedy", async ({ answers, said }) => {
  await expect(detect(answers)).rejects.toThrow(said);
});

test("complains about both engines when neither answers", async () => {
  await expect(detect({ docker: refuse("Cannot connect") })).rejects.toSatisfy((error) => error instanceof EngineError && error.complaints.length === 2);
});

test.each(["ssh://box", "tcp://10.0.0.1:2375"])("refuses DOCKER_HOST=%s, since the project is mounted from here", async (host) => {
  await expect(detect({ docker }, { env: { DOCKER_HOST: host } })).rejects.toThrow(/another machine/);
});

test.each(["unix:///run/user/1000/docker.sock", "tcp://127.0.0.1:2375"])("takes DOCKER_HOST=%s", async (host) => {
  expect(await detect({ docker }, { env: { DOCKER_HOST: host } })).toMatchObject({ kind: "docker" });
});

test("says so when Podman takes the place of a Docker that is there but does not answer", async () => {
  const warnings: string[] = [];
  expect(await detect({ docker: refuse("Cannot connect"), podman }, { warn: (text) => warnings.push(text) })).toMatchObject({ kind: "podman" });
  expect(warnings).toEqual([expect.stringMatching(/^docker did not answer \(.*\); podman is used, with its own images, volumes and logins$/)]);
});

test("says nothing about Podman where Docker is not installed", async () => {
  const warnings: string[] = [];
  await detect({ podman }, { warn: (text) => warnings.push(text) });
  expect(warnings).toEqual([]);
});

test("uses no other engine than the one that DOCKER_HOST names", async () => {
  const env = { DOCKER_HOST: "unix:///nowhere.sock" };
  await expect(detect({ docker: refuse("Cannot connect"), podman }, { env })).rejects.toThrow(/engine is not running/);
  expect(await detect({ podman }, { env, requested: "podman" })).toMatchObject({ kind: "podman" });
});
