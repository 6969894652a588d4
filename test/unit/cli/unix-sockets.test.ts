import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { planUnixSockets } from "../../../cli/workspace/unix-sockets.ts";

const dir = mkdtempSync(`${tmpdir()}/agentbox-sockets-`);
const servers = ["agent.sock", "plain.sock", "docker.sock", "state/own.sock"].map((name) => ({ path: `${dir}/${name}`, server: createServer() }));
const plan = (words: readonly string[], hostEnv: Record<string, string> = {}, platform: NodeJS.Platform = "linux") =>
  planUnixSockets({ words, hostEnv, platform, engineSockets: [`${dir}/engine.sock`], stateDir: `${dir}/state` });

beforeAll(async () => {
  mkdirSync(`${dir}/state`);
  for (const { path, server } of servers) await new Promise<void>((resolve) => server.listen(path, resolve));
  symlinkSync(`${dir}/docker.sock`, `${dir}/innocent.sock`);
  writeFileSync(`${dir}/file.sock`, "");
});

afterAll(() => {
  for (const { server } of servers) server.close();
  rmSync(dir, { recursive: true });
});

describe("the sockets of the host that a box gets", () => {
  test("are exactly those that are listed, at their own paths", () => {
    expect(plan([`${dir}/plain.sock`, `${dir}/plain.sock`])).toEqual({ mounts: [{ kind: "bind", source: `${dir}/plain.sock`, target: `${dir}/plain.sock`, readOnly: false }], env: {}, notices: [] });
    expect(plan([])).toEqual({ mounts: [], env: {}, notices: [] });
  });

  test.each(["ssh-agent", "$SSH_AUTH_SOCK"])("%s is the host's agent at a path of the box", (word) => {
    const { mounts, env } = plan([word], { SSH_AUTH_SOCK: `${dir}/agent.sock` });
    expect(mounts).toEqual([{ kind: "bind", source: `${dir}/agent.sock`, target: "/run/agentbox-ssh-agent.sock", readOnly: false }]);
    expect(env).toEqual({ SSH_AUTH_SOCK: "/run/agentbox-ssh-agent.sock" });
  });

  test("on a Mac the agent is where the engine's machine has it", () => {
    expect(plan(["ssh-agent"], {}, "darwin").mounts).toMatchObject([{ source: "/run/host-services/ssh-auth.sock", target: "/run/agentbox-ssh-agent.sock" }]);
  });

  test.each([
    ["an agent that does not run", ["ssh-agent"], "no ssh agent in the box"],
    ["a path where nothing is", ["/nowhere/x.sock"], "is not there"],
    ["a plain file", [`${dir}/file.sock`], "is no socket"],
  ])("%s is left out with a notice", (_row, words, said) => {
    const { mounts, env, notices } = plan(words);
    expect({ mounts, env }).toEqual({ mounts: [], env: {} });
    expect(notices.join()).toContain(said);
  });

  test.each([
    ["an engine's socket", `${dir}/docker.sock`, "container engine"],
    ["a link to an engine's socket", `${dir}/innocent.sock`, "container engine"],
    ["a socket of AgentBox", `${dir}/state/own.sock`, "belongs to AgentBox"],
  ])("%s stops the start", (_row, path, said) => {
    expect(() => plan([path])).toThrow(said);
  });

  test("an engine's socket as the ssh agent stops the start", () => {
    expect(() => plan(["ssh-agent"], { SSH_AUTH_SOCK: `${dir}/innocent.sock` })).toThrow("container engine");
  });
});
