import { chmod, mkdir } from "node:fs/promises";
import path from "node:path";
import { BOX_SPEC_PATH, type BoxSpec, CA_BUNDLE_PATH, LAUNCH_DIR, POLICY_JSON_PATH, POLICY_TEXT_PATH, PROGRESS_FILE, RESOLVER_ADDRESSES } from "../../policy/box-spec.ts";
import type { Mount } from "../mount.ts";
import { writeWhole } from "./whole-file.ts";

/** The one directory of the host that a container of a session sees, read-only, as /run/agentbox. */
export type VisibleDirectory = {
  directory: string;
  /** Mounted below it, writable, while a launch is followed; gone once the terminal is handed over. */
  launch: string;
  progress: string;
};

/** What is told about the policy in force: JSON, and a short text for agents. */
export type PolicyTexts = { json: string; text: string };

/** Where the directories of one container lie in those of its session. */
export function describeVisible(session: string, name: "box" | "holder"): VisibleDirectory {
  const launch = path.join(session, `${name}-launch`);
  return { directory: path.join(session, name), launch, progress: path.join(launch, PROGRESS_FILE) };
}

export type VisibleContent = {
  visible: VisibleDirectory;
  spec: BoxSpec;
  policy: PolicyTexts | undefined;
  /** Certificates for the programs of the box to trust. */
  bundle: string | undefined;
  /** The start is followed by its progress file, and the agent waits until that is removed. */
  followed: boolean;
};

/** Writes what a container sees, and returns the mounts that carry it in. */
export async function writeVisible({ visible, spec, policy, bundle, followed }: VisibleContent): Promise<Mount[]> {
  const { directory, launch } = visible;
  await makeShared(directory, 0o755);
  await writeShared(directory, BOX_SPEC_PATH, JSON.stringify(spec));
  if (policy !== undefined) await writePolicyTexts(directory, policy);
  if (bundle !== undefined) await writeShared(directory, CA_BUNDLE_PATH, bundle);
  const mounts: Mount[] = [{ kind: "bind", source: directory, target: path.dirname(BOX_SPEC_PATH), readOnly: true }];
  if (spec.firewall) {
    await writeShared(directory, resolverFile, `nameserver ${RESOLVER_ADDRESSES[4]}\n`);
    mounts.push({ kind: "bind", source: path.join(directory, resolverFile), target: "/etc/resolv.conf", readOnly: true });
  }
  if (!followed) return mounts;
  // The mount point of the next one: nothing can be made below what is mounted read-only.
  await makeShared(path.join(directory, path.basename(LAUNCH_DIR)), 0o755);
  await makeShared(launch, 0o777);
  return [...mounts, { kind: "bind", source: launch, target: LAUNCH_DIR, readOnly: false }];
}

const resolverFile = "resolv.conf";

/** Replaces what a container tells about its policy; a reader in the box sees either the old texts or the new ones. */
export async function writePolicyTexts(directory: string, { json, text }: PolicyTexts): Promise<void> {
  await writeShared(directory, POLICY_JSON_PATH, json);
  await writeShared(directory, POLICY_TEXT_PATH, text);
}

/** Whole or not at all. Root in the box may not read the files of others, so others may; the directories above keep the host's users out. */
async function writeShared(directory: string, name: string, content: string): Promise<void> {
  await writeWhole(path.join(directory, path.basename(name)), content, { exact: 0o644 });
}

async function makeShared(directory: string, mode: number): Promise<void> {
  await mkdir(directory, { recursive: true });
  await chmod(directory, mode);
}
