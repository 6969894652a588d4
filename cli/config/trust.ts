import { ConfigError } from "../../policy/errors.ts";
import { compareTrust } from "../../policy/widening.ts";
import type { Host } from "../host.ts";
import { withPolicyLock } from "./exclusive.ts";
import { CONFIG_FILE, type SessionConfig } from "./read-config.ts";
import { hashFiles, readTrusted, writeTrusted } from "./trust-store.ts";

/**
 * How a project's files stand. `unneeded`: there are none, or they only take away. `trusted`: the owner
 * agreed to exactly these texts. `untrusted`: what they would widen, and how they differ from what was trusted.
 */
export type TrustState = { kind: "unneeded" | "trusted" } | { kind: "untrusted"; widenings: readonly string[]; difference: string };

type TrustHost = Pick<Host, "agentboxHome">;
type Judged = Pick<SessionConfig, "projectPath" | "files" | "userConfig" | "config">;

/** Judges the files of a project against what its owner last agreed to. */
export function judgeTrust({ agentboxHome }: TrustHost, { projectPath, files, userConfig, config }: Judged): TrustState {
  if (files.length === 0) return { kind: "unneeded" };
  const trusted = readTrusted(agentboxHome, projectPath);
  if (trusted?.hash === hashFiles(files)) return { kind: "trusted" };
  const { widenings, difference } = compareTrust(trusted?.files, files, userConfig, config);
  return widenings.length === 0 ? { kind: "unneeded" } : { kind: "untrusted", widenings, difference };
}

export type TrustQuery = {
  host: TrustHost;
  config: Judged;
  /** Shows a question and returns whether it was agreed to; undefined where nobody can be asked. */
  ask: ((question: string) => Promise<boolean>) | undefined;
};

/**
 * Makes sure that the owner agreed to the project's files before anything is done by them. What is asked
 * about is what was read, so that a later change of the files is none of this agreement. Throws ConfigError when
 * nobody can be asked, and when the answer is no.
 */
export async function requireTrust({ host, config, ask }: TrustQuery): Promise<void> {
  const state = judgeTrust(host, config);
  if (state.kind !== "untrusted") return;
  if (ask === undefined) throw refuse(state.widenings, "look at the file, then run `agentbox policy trust`");
  if (!(await ask(`${renderUntrusted(state)}\nDo you trust it?`))) throw refuse(state.widenings, "correct the file, or agree to it");
  await trustProject(host, config);
}

/** Remembers that the owner agreed to the files as they were read. */
export async function trustProject({ agentboxHome }: TrustHost, { projectPath, files }: Pick<Judged, "projectPath" | "files">): Promise<void> {
  await withPolicyLock(agentboxHome, async () => await writeTrusted(agentboxHome, projectPath, files));
}

/** What is asked about: the differing lines, then what they open, in words. */
export function renderUntrusted({ widenings, difference }: Extract<TrustState, { kind: "untrusted" }>): string {
  return [`The configuration of this project is new or was changed (${CONFIG_FILE}):`, "", difference.trimEnd(), "", "It widens what a box may do:", ...widenings.map((line) => `  ${line}`)].join("\n");
}

function refuse(widenings: readonly string[], fix: string): ConfigError {
  const shown = widenings.slice(0, 3).join("; ");
  const rest = widenings.length > 3 ? `; and ${widenings.length - 3} more` : "";
  return new ConfigError({ what: `you did not agree to this file yet, and it widens what a box may do (${shown}${rest})`, expected: "a file that you trust", fix, place: { file: CONFIG_FILE } });
}

