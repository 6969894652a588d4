import { parseGitConfigList } from "../workspace/git-config.ts";
import type { GitSetting } from "../workspace/git-guards.ts";
import type { HostRunner } from "./host-command.ts";

/** Name and e-mail that commits carry; null where the host's git has none. */
export type GitIdentity = { name: string | null; email: string | null };

/** Asks the host's git, in the project, so that its conditional includes count. Its configuration stays on the host. */
export async function readGitIdentity(run: HostRunner, projectPath: string): Promise<GitIdentity> {
  const argv = ["git", "config", "--includes", "-z", "--get-regexp", String.raw`^user\.(name|email)$`] as const;
  const { exitCode, stdout } = await run([...argv], { cwd: projectPath });
  const entries = exitCode === 0 ? parseGitConfigList(stdout) : [];
  const find = (name: string) => clean(entries.findLast((entry) => entry.name === name)?.value);
  return { name: find("user.name"), email: find("user.email") };
}

/** Renders the variables that git prefers to any configuration. */
export function renderGitIdentity({ name, email }: GitIdentity): Record<string, string> {
  return {
    ...(name === null ? {} : { GIT_AUTHOR_NAME: name, GIT_COMMITTER_NAME: name }),
    ...(email === null ? {} : { GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_EMAIL: email }),
  };
}

/** Renders configuration that git reads from the environment, in the scope of its command line. */
export function renderGitConfig(settings: readonly GitSetting[]): Record<string, string> {
  if (settings.length === 0) return {};
  const pairs = settings.flatMap(({ name, value }, at) => [[`GIT_CONFIG_KEY_${at}`, name] as const, [`GIT_CONFIG_VALUE_${at}`, value] as const]);
  return { GIT_CONFIG_COUNT: String(settings.length), ...Object.fromEntries(pairs) };
}

function clean(value: string | undefined): string | null {
  const text = value?.replaceAll(/[\p{Cc}<>]/gu, "").trim() ?? "";
  return text === "" ? null : text;
}
