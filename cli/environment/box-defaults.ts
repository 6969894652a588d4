import { CA_VARIABLES } from "../../policy/proxy-environment.ts";
import { BOX_CA_BUNDLE, BOX_CACHE, BOX_HOME, BOX_SSH } from "../workspace/box-paths.ts";

/** What the image installed comes first, so that no file in a volume takes its place, not even in an admin shell. */
const SYSTEM_PATH = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
const OWN_PATH = [`${BOX_HOME}/.local/bin`, `${BOX_CACHE}/cargo/bin`, `${BOX_HOME}/go/bin`];

/** Set by AgentBox alone: a project's `.env` cannot change them, `-e` can. */
export const FIXED: Readonly<Record<string, string>> = {
  PATH: [...SYSTEM_PATH, ...OWN_PATH].join(":"),
  HOME: BOX_HOME,
  SHELL: "/bin/bash",
};

/** Package caches, above all of tools that keep theirs outside ~/.cache, so that all of a project's lie in its cache volume. */
export const CACHES: Readonly<Record<string, string>> = {
  HISTFILE: `${BOX_CACHE}/shell_history`,
  npm_config_cache: `${BOX_CACHE}/npm`,
  // Nobody in a box can follow the advice to update npm.
  npm_config_update_notifier: "false",
  // Where `npm install -g` can write: the image is read-only.
  npm_config_prefix: `${BOX_HOME}/.local`,
  PIP_CACHE_DIR: `${BOX_CACHE}/pip`,
  YARN_GLOBAL_FOLDER: `${BOX_CACHE}/yarn-berry`,
  BUN_INSTALL_CACHE_DIR: `${BOX_CACHE}/bun`,
  CARGO_HOME: `${BOX_CACHE}/cargo`,
  GOMODCACHE: `${BOX_CACHE}/go-mod`,
  GRADLE_USER_HOME: `${BOX_CACHE}/gradle`,
  NUGET_PACKAGES: `${BOX_CACHE}/nuget`,
  BUNDLE_USER_CACHE: `${BOX_CACHE}/bundle`,
};

/** Points every program that brings its own list of authorities at the image's bundle, which holds the site's authority beside the public ones. */
export function renderCaVariables(): Record<string, string> {
  return Object.fromEntries(CA_VARIABLES.map((name) => [name, BOX_CA_BUNDLE]));
}

/** ssh takes the home of uid 0 from the account, which is not the box's home: it has to be told. */
export const ROOT_SSH: Readonly<Record<string, string>> = { GIT_SSH_COMMAND: `ssh -F ${BOX_SSH}/config` };
