import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { mustRun } from "./command.ts";

/** Repositories that come into being when they are first asked for, each with one commit on `main`. */
export type GitRepositories = {
  /** The folder that holds all of them; `git http-backend` calls it the project root. */
  root(): Promise<string>;
  /** Makes sure that `OWNER/REPO` exists and returns its path below the root; undefined for a name git would refuse. */
  open(path: string): Promise<string | undefined>;
  close(): Promise<void>;
};

const AUTHOR = "Lab <lab@lab-names.example> 1767225600 +0000";
const README = "# A repository of the lab\n";

/** git must not read the settings of whoever runs the lab. */
export const GIT_ENV = {
  PATH: process.env["PATH"] ?? "/usr/bin:/bin",
  HOME: "/nonexistent",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_COUNT: "2",
  GIT_CONFIG_KEY_0: "safe.directory",
  GIT_CONFIG_VALUE_0: "*",
  GIT_CONFIG_KEY_1: "http.receivepack",
  GIT_CONFIG_VALUE_1: "true",
} as const;

/** Creates the collection in a directory below `scratch`; nothing is written before the first `open`. */
export function createGitRepositories(scratch: string): GitRepositories {
  const made = new Map<string, Promise<string>>();
  let folder: Promise<string> | undefined;

  function root(): Promise<string> {
    folder ??= mkdtemp(join(scratch, "git-"));
    return folder;
  }

  async function make(name: string): Promise<string> {
    const directory = join(await root(), name);
    await mustRun(["git", "init", "--quiet", "--bare", "--initial-branch=main", directory], { env: GIT_ENV });
    await mustRun(["git", "-C", directory, "fast-import", "--quiet"], { env: GIT_ENV, input: firstCommit() });
    return name;
  }

  return {
    root,
    open: async (path) => {
      const name = repositoryName(path);
      if (name === undefined) return undefined;
      const opened = made.get(name) ?? make(name);
      made.set(name, opened);
      return await opened;
    },
    close: async () => {
      if (folder !== undefined) await rm(await folder, { recursive: true, force: true });
    },
  };
}

/** `/owner/repo` and `owner/repo.git` are the same repository, as on the great hosts. */
export function repositoryName(path: string): string | undefined {
  const segments = path.replace(/^\//, "").replace(/\/$/, "").replace(/\.git$/, "").split("/");
  const good = segments.length <= 4 && segments.every((segment) => /^[\w][\w.-]*$/.test(segment));
  return good ? `${segments.join("/")}.git` : undefined;
}

function firstCommit(): string {
  return [
    "commit refs/heads/main",
    `committer ${AUTHOR}`,
    "data 13\nfirst commit\n",
    `M 100644 inline README.md\ndata ${README.length}\n${README}`,
    "",
  ].join("\n");
}
