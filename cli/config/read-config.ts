import { join, resolve } from "node:path";
import { buildDocument, decideMode } from "../../policy/config-document.ts";
import { type ParsedConfig, parseConfig } from "../../policy/config-file.ts";
import type { Config } from "../../policy/config-schema.ts";
import { collectComplaints, type Complaint, ConfigError } from "../../policy/errors.ts";
import type { PolicyDocument } from "../../policy/policy-document.ts";
import type { Preset } from "../../policy/preset.ts";
import { loadPublicSuffixTest } from "../../policy/wildcard-check.ts";
import type { Host } from "../host.ts";
import { expandTilde } from "../workspace/git-config.ts";
import { resolvePath } from "../workspace/path-fact.ts";
import { type ConfigText, readConfigText } from "./config-text.ts";
import { readNamedFile } from "./named-file.ts";
import type { Overlay } from "./overlay.ts";
import { readPresets } from "./preset-files.ts";

/** Where the configuration of a project lies in its directory, and the user's own in the home directory. */
export const CONFIG_FILE = ".agentbox/config.toml";
/** How messages call the user's own file. */
export const USER_CONFIG_NAME = `~/${CONFIG_FILE}`;

/** What the files of a project and its user say about a box. */
export type SessionConfig = {
  /** Real path of the project. */
  projectPath: string;
  /** The values of the file that counts: the project's, else the user's; empty without either. */
  config: Config;
  /** Name of that file in messages; undefined where there is none. */
  source: string | undefined;
  /** Whether that file is the project's, which needs trust. */
  ofProject: boolean;
  /** The user's own values, of which `required` always counts. */
  userConfig: Config;
  /** What `[network]` wants; `why` names what decided. */
  mode: "none" | "allowlist" | "full";
  why: string;
  /** What all of it was made of, so that an edit is made of exactly what was judged. */
  texts: ConfigTexts;
  /** The files that need trust: the project's and those that it names. Empty where the project has none. */
  files: readonly ConfigText[];
  /** Paths of all files that were read or would be if they were there, to be watched while a box runs. */
  watched: readonly string[];
  notices: readonly string[];
  presets: readonly Preset[];
  /** The policy of a box for an agent, with what was changed for the session. */
  document: (agent: PolicyDocument["agent"], overlay?: Overlay) => PolicyDocument;
};

/** The texts of the two configuration files, and of the files that the one that counts names; undefined for those that are not there. */
type ConfigTexts = { project: ConfigText | undefined; user: ConfigText | undefined; named: NamedFiles };

export type ConfigQuery = {
  host: Pick<Host, "agentboxHome" | "root" | "home">;
  /** Real path of the project. */
  projectPath: string;
  /** Real paths of further directories that the box may write, beside those of `[box] add_dirs`. */
  addDirs?: readonly string[];
  /** Taken in place of what the disk holds: an agent may have changed it since it was judged. */
  texts?: ConfigTexts | undefined;
};

/** Reads what decides about a box of this project. Throws ConfigError with the mistakes of both files; changes nothing. */
export async function readConfig({ host, projectPath, addDirs = [], texts: given }: ConfigQuery): Promise<SessionConfig> {
  const presets = await readPresets(host.root);
  const ids = presets.map(({ id }) => id);
  const projectFile = { name: CONFIG_FILE, path: join(projectPath, CONFIG_FILE), within: join(projectPath, ".agentbox") };
  const userFile = { name: USER_CONFIG_NAME, path: join(host.agentboxHome, "config.toml") };
  const complaints: Complaint[] = [];
  const texts = given === undefined ? [projectFile, userFile].map((query) => collectComplaints(complaints, () => readConfigText(query))) : [given.project, given.user];
  const isPublicSuffix = await loadPublicSuffixTest(texts.flatMap((file) => file?.text ?? []));
  const [project, user] = texts.map((file) => (file === undefined ? undefined : collectComplaints(complaints, () => ({ file, parsed: parseConfig({ file: file.name, text: file.text, presets: ids, isPublicSuffix }) }))));
  if (complaints.length > 0) throw new ConfigError(complaints);
  const chosen = project ?? user;
  const named = given?.named ?? (chosen === undefined ? {} : readNamedFiles(chosen, { projectPath, addDirs, home: host.home, ofProject: project !== undefined }));
  const namedFiles = [named.allowFile, named.caFile].filter((file) => file !== undefined);
  const config = chosen?.parsed.config ?? {};
  const { mode, why } = decideMode(config);
  return {
    projectPath,
    config,
    source: chosen?.parsed.file,
    ofProject: project !== undefined,
    userConfig: user?.parsed.config ?? {},
    mode,
    why,
    texts: { project: project?.file, user: user?.file, named },
    files: project === undefined ? [] : [project.file, ...namedFiles],
    watched: [projectFile.path, userFile.path, ...namedFiles.map(({ path }) => path)],
    notices: project?.parsed.config.network?.required === undefined ? [] : [`${CONFIG_FILE}: required counts in ${USER_CONFIG_NAME} only`],
    presets,
    document: (agent, overlay) => buildDocument({ project: project?.parsed, user: user?.parsed, presets, allowFile: named.allowFile, agent, session: overlay }),
  };
}

type ReadFile = { file: ConfigText; parsed: ParsedConfig };

type NamedFiles = { allowFile?: ConfigText | undefined; caFile?: ConfigText | undefined };

/** What the files named say counts as part of the configuration: what they hold is trusted, watched and shown with it. */
function readNamedFiles({ file, parsed }: ReadFile, { projectPath, addDirs, home, ofProject }: { projectPath: string; addDirs: readonly string[]; home: string; ofProject: boolean }): NamedFiles {
  const { network, box, build } = parsed.config;
  const typed = (box?.add_dirs ?? []).map((directory) => resolve(projectPath, expandTilde(directory, home)));
  const added = typed.flatMap((directory) => resolvePath(directory) ?? []);
  const rest = { by: file, home, project: projectPath, writableRoots: [projectPath, ...addDirs, ...added], readOnly: join(projectPath, ".agentbox") };
  return {
    allowFile: network?.allow_file === undefined ? undefined : readNamedFile({ key: "allow_file", named: network.allow_file, place: parsed.placeOf(["network", "allow_file"]), ...rest }),
    // The user's own needs no trust, and is read where it is needed.
    caFile: build?.ca_file === undefined || !ofProject ? undefined : readNamedFile({ key: "ca_file", named: build.ca_file, place: parsed.placeOf(["build", "ca_file"]), ...rest }),
  };
}
