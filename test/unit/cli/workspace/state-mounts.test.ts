import { expect, test } from "vitest";
import { planStateMounts, projectId } from "../../../../cli/workspace/state-mounts.ts";

test("a project's id is stable and differs by path and by user", () => {
  expect(projectId("/w/p", 1000)).toMatch(/^[0-9a-f]{12}$/);
  expect(projectId("/w/p", 1000)).toBe(projectId("/w/p", 1000));
  expect(new Set([projectId("/w/p", 1000), projectId("/w/p", 1001), projectId("/w/q", 1000), projectId("/w/p\0", 1000)]).size).toBe(4);
});

function names(agent: string, projectPath: string): string[] {
  return planStateMounts({ agent, projectPath, uid: 1000, sshDir: null }).map((mount) => (mount.kind === "volume" ? mount.name : mount.kind));
}

test("the home is kept per agent and project, the cache per project, the login per agent and user", () => {
  const [home, cache, login] = names("claude", "/w/p");
  expect(names("codex", "/w/p")).toEqual([expect.not.stringContaining("claude"), cache, expect.not.stringContaining("claude")]);
  expect(names("claude", "/w/q")).toEqual([expect.not.stringMatching(`^${home}$`), expect.not.stringMatching(`^${cache}$`), login]);
});

test("the dedicated key is mounted read-only, and only when there is one", () => {
  const mounts = planStateMounts({ agent: "claude", projectPath: "/w/p", uid: 1000, sshDir: "/home/ada/.agentbox/ssh" });
  expect(mounts.at(-1)).toEqual({ kind: "bind", source: "/home/ada/.agentbox/ssh", target: "/home/agent/.ssh", readOnly: true });
  expect(mounts.filter(({ kind }) => kind === "volume").map(({ target }) => target)).toEqual(["/home/agent", "/home/agent/.cache", "/home/agent/.agentbox-login"]);
});
