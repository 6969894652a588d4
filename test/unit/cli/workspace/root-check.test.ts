import { expect, test } from "vitest";
import { checkRoot, type HostFacts } from "../../../../cli/workspace/root-check.ts";
import type { Root } from "../../../../cli/workspace/roots.ts";

const host: HostFacts = {
  home: ["/home/ada", "/data/homes/ada"],
  state: ["/home/ada/.agentbox", "/data/homes/ada/.agentbox"],
  installation: ["/home/ada/src/agentbox"],
  agentState: ["/home/ada/.claude", "/home/ada/.codex"],
  secrets: ["/home/ada/.ssh", "/home/ada/.config/gcloud", "/home/ada/.netrc", "/home/ada/dotfiles/npmrc"],
  sockets: ["/srv/engine/docker.sock"],
};

type Options = { role?: Root["role"]; yesSecrets?: boolean };

function check(path: string, { role = "project", yesSecrets = false }: Options = {}): string {
  return checkRoot({ path, typed: path, role, owner: 1000 }, host, { yesSecrets })
    .map(({ what }) => what)
    .join("\n");
}

const allowed = [
  "/home/ada/work",
  "/home/ada/work/.sshd",
  "/home/ada/.config/nvim",
  "/home/ada/.claude-notes",
  "/srv/project",
  "/tmp/project",
  "/usr/src/app",
  "/run/media/ada/disk/project",
  "/root/project",
  "/home/agent/project",
  "/homestead",
];
test.each(allowed)("allows %s", (path) => expect(check(path)).toBe(""));

const refused: [string, string, RegExp][] = [
  ["the root", "/", /root of the file system/],
  ["the running installation", "/home/ada/src/agentbox", /installation of AgentBox/],
  ["a part of the running installation", "/home/ada/src/agentbox/allowlists", /installation of AgentBox/],
  ["what holds the running installation", "/home/ada/src", /installation of AgentBox/],
  ["the home directory", "/home/ada", /your home directory/],
  ["the home directory by its other name", "/data/homes/ada", /your home directory/],
  ["a parent of the home directory", "/data/homes", /holds AgentBox's own directory/],
  ["AgentBox's own directory", "/home/ada/.agentbox", /AgentBox/],
  ["what lies below AgentBox's own directory", "/home/ada/.agentbox/sessions/x", /belongs to AgentBox/],
  ["the state of an agent", "/home/ada/.claude/projects", /state of an agent/],
  ["a directory that holds an engine's socket", "/srv/engine", /would give the agent the host/],
  ["/proc", "/proc", /own \/proc/],
  ["a process' directory", "/proc/1/root", /system directory \/proc/],
  ["a device directory", "/dev/shm", /system directory \/dev/],
  ["/sys", "/sys/fs/cgroup", /system directory \/sys/],
  ["what root runs in the box", "/usr/local/lib/agentbox", /system directory \/usr/],
  ["the box's configuration", "/etc/ssl", /system directory \/etc/],
  ["the box's home", "/home/agent", /own \/home\/agent/],
  ["the box's cache", "/home/agent/.cache", /own \/home\/agent\/\.cache/],
  ["the box's temporary directory", "/tmp", /own \/tmp/],
  ["the runtime directory of a user", "/run/user/1000", /system directory \/run/],
];
test.each(refused)("refuses %s, with --yes-secrets too", (_name, path, message) => {
  expect(check(path)).toMatch(message);
  expect(check(path, { role: "added", yesSecrets: true })).toMatch(message);
});

const secret: [string, string][] = [
  ["a directory of keys", "/home/ada/.ssh"],
  ["what lies below one", "/home/ada/.ssh/keys"],
  ["a directory that holds one", "/home/ada/.config"],
  ["a directory that holds the target of a secret link", "/home/ada/dotfiles"],
  ["keys of somebody else", "/home/bob/.gnupg/private"],
];
test.each(secret)("lets %s in with --yes-secrets only", (_name, path) => {
  expect(check(path, { role: "added" })).toMatch(/keys or tokens/);
  expect(check(path, { role: "added", yesSecrets: true })).toBe("");
});
