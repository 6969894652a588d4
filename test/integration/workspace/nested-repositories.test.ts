import { appendFileSync, cpSync, existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { git, makeDirectory } from "./box.ts";
import { hearAfter, makeRepository, plant } from "./session.ts";

let place: string;
let project: string;

beforeEach(() => {
  place = makeDirectory();
  project = join(place, "project");
  makeRepository(project);
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

function names(...paths: string[]): string {
  return `git repositories were made or changed while the box ran: ${paths.map((path) => JSON.stringify(path)).join(", ")};`;
}

function addSubmodule(): void {
  makeRepository(join(place, "library"));
  git(project, "submodule", "--quiet", "add", join(place, "library"), "module");
  git(project, "commit", "-q", "-m", "module");
}

test("a planted repository that git status in the project would obey is told", async () => {
  const mark = join(place, "ran");
  const notices = await hearAfter(place, () => {
    plant(join(project, "sub"), `touch '${mark}'; false`);
    git(project, "update-index", "--add", "--cacheinfo", `160000,${git(join(project, "sub"), "rev-parse", "HEAD").trim()},sub`);
  });
  expect(notices).toEqual([expect.stringContaining(names("sub/.git"))]);
  expect(existsSync(mark)).toBe(false);
  git(project, "status");
  expect(existsSync(mark), "git no longer runs it: the warning is needless").toBe(true);
});

describe("told at the end", () => {
  const rows: [string, { before?: () => void; work: () => void; told: string[] }][] = [
    ["a bare repository under any name", { work: () => git(project, "init", "-q", "--bare", "src"), told: ["src"] }],
    ["a repository in a directory full of packages", { work: () => plant(join(project, "node_modules/a/b")), told: ["node_modules/a/b/.git"] }],
    ["a .git file that leads to a store under another name", {
      work: () => {
        plant(join(project, "sub"));
        renameSync(join(project, "sub/.git"), join(project, "store"));
        writeFileSync(join(project, "sub/.git"), "gitdir: ../store\n");
      },
      told: ["store", "sub/.git"],
    }],
    ["a .git link to a store that was there before", {
      before: () => {
        plant(join(project, "fixture"));
        renameSync(join(project, "fixture/.git"), join(project, "store"));
      },
      work: () => symlinkSync("../store", join(project, "fixture/.git")),
      told: ["fixture/.git"],
    }],
    ["a directory that takes all but its HEAD from elsewhere", {
      work: () => {
        mkdirSync(join(project, "sub/.git"), { recursive: true });
        writeFileSync(join(project, "sub/.git/HEAD"), "ref: refs/heads/main\n");
        writeFileSync(join(project, "sub/.git/commondir"), "../../store\n");
      },
      told: ["sub/.git"],
    }],
    ["a repository that stood ready under another name and was renamed", {
      before: () => {
        plant(join(project, "fixture"));
        renameSync(join(project, "fixture/.git"), join(project, "fixture/dotgit"));
      },
      work: () => renameSync(join(project, "fixture/dotgit"), join(project, "fixture/.git")),
      told: ["fixture/.git"],
    }],
    ["an existing repository whose configuration was changed in place", {
      before: () => makeRepository(join(project, "sub")),
      work: () => appendFileSync(join(project, "sub/.git/config"), "[core]\n\tfsmonitor = false\n"),
      told: ["sub/.git"],
    }],
    ["an existing repository whose configuration is a link to a file that was changed", {
      before: () => {
        makeRepository(join(project, "sub"));
        renameSync(join(project, "sub/.git/config"), join(project, "config"));
        symlinkSync("../../config", join(project, "sub/.git/config"));
      },
      work: () => appendFileSync(join(project, "config"), "[core]\n\tfsmonitor = false\n"),
      told: ["sub/.git"],
    }],
    ["an existing repository whose configuration stands in another directory and was changed there", {
      before: () => {
        makeRepository(join(project, "sub"));
        mkdirSync(join(project, "common"));
        for (const name of ["objects", "refs", "config"]) renameSync(join(project, "sub/.git", name), join(project, "common", name));
        writeFileSync(join(project, "sub/.git/commondir"), "../../common\n");
      },
      work: () => appendFileSync(join(project, "common/config"), "[core]\n\tfsmonitor = false\n"),
      told: ["sub/.git"],
    }],
    ["an existing repository with a hook more", {
      before: () => makeRepository(join(project, "sub")),
      work: () => writeFileSync(join(project, "sub/.git/hooks/post-index-change"), "#!/bin/sh\n", { mode: 0o755 }),
      told: ["sub/.git"],
    }],
    ["an existing repository with a hook rewritten in place", {
      before: () => {
        makeRepository(join(project, "sub"));
        writeFileSync(join(project, "sub/.git/hooks/post-commit"), "#!/bin/sh\n", { mode: 0o755 });
      },
      work: () => appendFileSync(join(project, "sub/.git/hooks/post-commit"), "id\n"),
      told: ["sub/.git"],
    }],
    ["an existing repository with a configuration for its worktree", {
      before: () => makeRepository(join(project, "sub")),
      work: () => writeFileSync(join(project, "sub/.git/config.worktree"), ""),
      told: ["sub/.git"],
    }],
    ["a repository of a submodule that the box added to the project's", { work: () => plant(join(project, ".git/modules/new")), told: [".git/modules/new/.git"] }],
    ["a worktree of the project with a configuration of its own", {
      work: () => {
        git(project, "worktree", "add", "-q", "tree");
        writeFileSync(join(project, ".git/worktrees/tree/config.worktree"), "");
      },
      told: [".git/worktrees/tree", "tree/.git"],
    }],
  ];

  test.each(rows)("%s", async (_name, { before, work, told }) => {
    before?.();
    expect(await hearAfter(place, work)).toEqual([expect.stringContaining(names(...told))]);
  });

  test("five names and the number of the others", async () => {
    const notices = await hearAfter(place, () => {
      for (const name of ["a", "b", "c", "d", "e", "f", "g"]) plant(join(project, name));
    });
    expect(notices).toEqual([expect.stringMatching(/: ("[a-g]\/\.git"(, )?){5} and 2 more;/)]);
  });

  test("names with control and direction characters, quoted", async () => {
    const notices = await hearAfter(place, () => plant(join(project, "a\n\u001b[31m\u009b\u202eb")));
    expect(notices).toEqual([expect.stringContaining(String.raw`"a\n\u001b[31m\u009b\u202eb/.git"`)]);
  });
});

describe("not told", () => {
  const rows: [string, { before?: () => void; work: () => void }][] = [
    ["an existing repository that nobody touched", { before: () => plant(join(project, "sub")), work: () => {} }],
    ["commits and branches in an existing repository", {
      before: () => plant(join(project, "sub")),
      work: () => {
        git(join(project, "sub"), "switch", "-q", "-c", "other");
        git(join(project, "sub"), "commit", "-q", "--allow-empty", "-m", "y");
        git(join(project, "sub"), "gc", "-q");
      },
    }],
    ["commits in a submodule, and a second checkout that obeys the same configuration", {
      before: () => addSubmodule(),
      work: () => {
        git(join(project, "module"), "commit", "-q", "--allow-empty", "-m", "y");
        mkdirSync(join(project, "second"));
        writeFileSync(join(project, "second/.git"), "gitdir: ../.git/modules/module\n");
      },
    }],
    ["a worktree that obeys the project's own configuration", { work: () => git(project, "worktree", "add", "-q", ".trees/one") }],
    ["repositories outside that a link leads to", {
      before: () => plant(join(place, "outside")),
      work: () => {
        plant(join(place, "outside/new"));
        symlinkSync("../outside", join(project, "link"));
      },
    }],
    ["a .git directory that is no repository, and a directory with some of a repository's names", {
      work: () => {
        mkdirSync(join(project, "sub/.git"), { recursive: true });
        for (const name of ["objects", "config", "hooks"]) mkdirSync(join(project, "part", name), { recursive: true });
      },
    }],
    ["a repository that was removed again", {
      work: () => {
        plant(join(project, "sub"));
        rmSync(join(project, "sub"), { recursive: true });
      },
    }],
    ["a file where a directory of the project was", {
      before: () => mkdirSync(join(project, "sub")),
      work: () => {
        rmSync(join(project, "sub"), { recursive: true });
        writeFileSync(join(project, "sub"), "");
      },
    }],
  ];

  test.each(rows)("%s", async (_name, { before, work }) => {
    before?.();
    expect(await hearAfter(place, work)).toEqual([]);
  });

  test("the cover of a project without a repository", async () => {
    rmSync(join(project, ".git"), { recursive: true });
    expect(await hearAfter(place, () => {})).toEqual([]);
  });
});

test("a repository that was copied with its old times is told all the same", async () => {
  plant(join(project, "sub"));
  const notices = await hearAfter(place, () => cpSync(join(project, "sub"), join(project, "copy"), { recursive: true, preserveTimestamps: true }));
  expect(notices).toEqual([expect.stringContaining(names("copy/.git"))]);
});
