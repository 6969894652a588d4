import { readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Complaint } from "../../policy/errors.ts";
import { runHostCommand, type HostRunner } from "../environment/host-command.ts";
import { readGitFacts, type GitFacts } from "./git-facts.ts";
import { readHostFacts } from "./host-facts.ts";
import { readPathFact, type PathFact } from "./path-fact.ts";
import type { HostFacts } from "./root-check.ts";
import { readRoots, type Root } from "./roots.ts";

/** What stands in one mounted directory that the host runs or obeys later. */
export type RootFacts = {
  root: Root;
  /** Directories protected as a whole. */
  directories: PathFact[];
  /** `.claude`, of which only the settings are protected. */
  claude: PathFact;
  settings: PathFact[];
  git: GitFacts;
  /** Whether the disk takes `.GIT` for `.git`. */
  ignoresCase: boolean;
};

/** Everything that the plan of mounts depends on; data only. */
export type WorkspaceFacts = {
  /** The directory as the user's shell shows it, where it differs from the real path; else null. */
  typed: string | null;
  roots: RootFacts[];
  host: HostFacts;
  complaints: Complaint[];
};

const PROTECTED_DIRECTORIES = [".agentbox", ".devcontainer", ".vscode"];
const KNOWN_SETTINGS = ["settings.json", "settings.local.json"];

type WorkspaceQuery = {
  cwd: string;
  addDirs: readonly string[];
  home: string;
  /** AgentBox's own directory, ~/.agentbox. */
  stateDir: string;
  /** Top level of the running installation. */
  installation: string;
  env: NodeJS.ProcessEnv;
  run?: HostRunner;
};

/** Reads the host's side of a workspace; changes nothing. Mistakes are collected in `complaints`. */
export async function readWorkspace({ cwd, addDirs, home, stateDir, installation, env, run = runHostCommand }: WorkspaceQuery): Promise<WorkspaceFacts> {
  const { roots, complaints } = readRoots({ cwd, addDirs, home });
  const project = roots.find(({ role }) => role === "project");
  const typed = project === undefined || env["PWD"] === undefined || env["PWD"] === project.path ? null : env["PWD"];
  return {
    typed: typed !== null && project !== undefined && leadsTo(typed, project.path) ? typed : null,
    roots: await Promise.all(roots.map((root) => readRootFacts(root, { run, home }))),
    host: readHostFacts({ home, stateDir, installation, env, roots: roots.map(({ path }) => path) }),
    complaints,
  };
}

async function readRootFacts(root: Root, reader: { run: HostRunner; home: string }): Promise<RootFacts> {
  const claude = readPathFact(join(root.path, ".claude"));
  const present = claude.kind === "directory" ? readdirSync(claude.path).filter((name) => /^settings.*\.json$/i.test(name)) : [];
  return {
    root,
    directories: PROTECTED_DIRECTORIES.map((name) => readPathFact(join(root.path, name))),
    claude,
    settings: [...new Set([...KNOWN_SETTINGS, ...present])].map((name) => readPathFact(join(claude.path, name))),
    git: await readGitFacts(reader, root.path),
    ignoresCase: ignoresCase(root.path),
  };
}

/** Looks at the directory under its name in the other case. */
function ignoresCase(path: string): boolean {
  const name = basename(path);
  const other = name === name.toUpperCase() ? name.toLowerCase() : name.toUpperCase();
  return other !== name && leadsTo(join(dirname(path), other), path);
}

function leadsTo(path: string, target: string): boolean {
  try {
    const [one, two] = [statSync(path), statSync(target)];
    return one.dev === two.dev && one.ino === two.ino;
  } catch {
    return false;
  }
}
