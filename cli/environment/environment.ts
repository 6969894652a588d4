import { CA_VARIABLES } from "../../policy/proxy-environment.ts";
import { BOX_CA_BUNDLE } from "../workspace/box-paths.ts";
import { ConfigError, UsageError } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import { CACHES, FIXED, renderCaVariables, ROOT_SSH } from "./box-defaults.ts";
import { readDotEnv, type DotEnvFile } from "./dot-env-file.ts";
import { parseEnvOptions } from "./env-options.ts";
import { addProxyVariables, type ProxyVariablesInput } from "./proxy-variables.ts";
import { readGitIdentity, renderGitConfig, renderGitIdentity, type GitIdentity } from "./git-identity.ts";
import type { GitSetting } from "../workspace/git-guards.ts";
import type { Root } from "../workspace/roots.ts";
import { runHostCommand, type HostRunner } from "./host-command.ts";
import { renderTerminal } from "./terminal.ts";
import { checkTotal, isReserved, type Variable } from "./variable.ts";

/** What the host and the project say about the agent's environment; data only. */
export type EnvironmentFacts = {
  dotEnv: DotEnvFile | null;
  options: Variable[];
  identity: GitIdentity;
  /** TERM, COLORTERM and TZ, already judged. */
  terminal: Record<string, string>;
};

type EnvironmentQuery = {
  projectPath: string;
  ignoreDotEnv: boolean;
  /** Values of `-e`. */
  options: readonly string[];
  hostEnv: NodeJS.ProcessEnv;
  run?: HostRunner;
};

/** Reads `.env`, `-e` and the host's git identity. Mistakes of the command line are a `UsageError`, of the file a `ConfigError`. */
export async function readEnvironment({ projectPath, ignoreDotEnv, options, hostEnv, run = runHostCommand }: EnvironmentQuery): Promise<EnvironmentFacts> {
  const { variables, complaints } = parseEnvOptions(options, hostEnv);
  if (complaints.length > 0) throw new UsageError(complaints);
  return {
    dotEnv: ignoreDotEnv ? null : readDotEnv(projectPath),
    options: variables,
    identity: await readGitIdentity(run, projectPath),
    terminal: renderTerminal(hostEnv, Intl.DateTimeFormat().resolvedOptions().timeZone),
  };
}

type PlanQuery = {
  facts: EnvironmentFacts;
  /** Variables of the agent's profile. */
  profile: Readonly<Record<string, string>>;
  /** Id that the agent runs with; 0 for a host user who is root and for `shell --admin`. */
  boxUid: number;
  siteCa: boolean;
  sshKey: boolean;
  /** The mounted directories; git is told to trust those of another owner than the box's user. */
  roots: readonly Pick<Root, "path" | "owner">[];
  /** What the plan of the workspace asks of git. */
  gitConfig: readonly GitSetting[];
  /** Where names are judged: what leads programs to the box's proxy, and `caBundle` as in `addProxyVariables`. */
  web: Omit<ProxyVariablesInput, "env"> | undefined;
};

type PlannedEnvironment = {
  env: Record<string, string>;
  /** Bundles that programs were to trust by themselves: they join the box's. */
  bundles: string[];
  notices: string[];
};

/**
 * Plans the agent's whole environment; pure. Nothing of the host's own comes in but the terminal's and the
 * clock's kind. A later source wins: (1) defaults of the box, (2) the site's authority, (3) the agent's
 * profile, (4) the project's `.env`, without what is fixed or steers AgentBox, (5) `-e`, (6) what leads programs to the box's proxy.
 */
export function planEnvironment({ facts, profile, boxUid, siteCa, sshKey, roots, gitConfig, web }: PlanQuery): PlannedEnvironment {
  const user = boxUid === 0 ? "root" : "agent";
  const fixed: Record<string, string> = { ...FIXED, USER: user, LOGNAME: user, ...(boxUid === 0 ? { IS_SANDBOX: "1" } : {}) };
  const { kept, notices } = sortDotEnv(facts.dotEnv, fixed);
  const own: Record<string, string> = {
    LANG: "C.UTF-8",
    ...CACHES,
    ...facts.terminal,
    ...(boxUid === 0 && sshKey ? ROOT_SSH : {}),
    ...renderGitConfig([...trustForeign(roots, boxUid), ...gitConfig]),
    ...renderGitIdentity(facts.identity),
    ...(siteCa ? renderCaVariables() : {}),
    ...profile,
    ...fixed,
    ...kept,
    ...Object.fromEntries(facts.options.map(({ name, value }) => [name, value])),
  };
  const { env, notices: told } = web === undefined ? { env: own, notices: [] } : addProxyVariables({ ...web, env: own });
  const excess = checkTotal(env);
  if (excess !== null) throw new ConfigError(excess);
  const bundles = web?.caBundle === undefined ? [] : CA_VARIABLES.flatMap((name) => own[name] ?? []);
  return { env, bundles: [...new Set(bundles)].filter((file) => file !== "" && file !== BOX_CA_BUNDLE), notices: [...notices, ...told] };
}

/** git refuses to work in a repository of somebody else unless told; the user chose the directory. */
function trustForeign(roots: readonly Pick<Root, "path" | "owner">[], boxUid: number): GitSetting[] {
  return roots.filter(({ owner }) => owner !== boxUid).map(({ path }) => ({ name: "safe.directory", value: path }));
}

function sortDotEnv(dotEnv: DotEnvFile | null, fixed: Readonly<Record<string, string>>): { kept: Record<string, string>; notices: string[] } {
  if (dotEnv === null) return { kept: {}, notices: [] };
  const isRefused = (name: string) => isReserved(name) || Object.hasOwn(fixed, name);
  const refused = [...new Set(dotEnv.variables.map(({ name }) => name).filter(isRefused))];
  const kept = Object.fromEntries(dotEnv.variables.filter(({ name }) => !isRefused(name)).map(({ name, value }) => [name, value]));
  if (refused.length === 0) return { kept, notices: [] };
  return { kept, notices: [`ignored in ${quotePath(dotEnv.file)}: ${refused.join(", ")} (the box sets ${refused.length === 1 ? "it" : "them"} itself)`] };
}
