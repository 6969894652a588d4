import { createHash } from "node:crypto";
import { join } from "node:path";
import { z } from "zod";
import { ConfigError } from "../../policy/errors.ts";
import { makePrivateDirectory } from "../session/home.ts";
import { writeWhole } from "../session/whole-file.ts";
import { readPlainFile } from "../workspace/plain-file.ts";
import type { ConfigText } from "./config-text.ts";

const trustedFile = z.strictObject({ name: z.string(), text: z.string() });

const trustSchema = z.strictObject({
  version: z.literal(1),
  /** By the real path of the project: what its owner last agreed to, and when (RFC 3339). */
  projects: z.record(z.string(), z.strictObject({ hash: z.string(), time: z.string(), files: z.array(trustedFile) })),
});

export type TrustedFiles = z.infer<typeof trustSchema>["projects"][string];

const FILE = "trust.json";
/** The texts of many projects are in it. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Where it is remembered what owners agreed to. */
export function findTrustStore(agentboxHome: string): string {
  return join(agentboxHome, FILE);
}

/** The hash over the contents of a project's files, their names included. */
export function hashFiles(files: readonly Pick<ConfigText, "name" | "text">[]): string {
  const pairs = files.map(({ name, text }) => [name, text]);
  return `sha256:${createHash("sha256").update(JSON.stringify(pairs)).digest("hex")}`;
}

/** Reads what was last agreed to for a project; undefined for nothing yet. Throws ConfigError for a broken store. */
export function readTrusted(agentboxHome: string, project: string): TrustedFiles | undefined {
  const { projects } = readStore(agentboxHome);
  return Object.hasOwn(projects, project) ? projects[project] : undefined;
}

/** Remembers that the owner agreed to these files. To be called under the policy lock. */
export async function writeTrusted(agentboxHome: string, project: string, files: readonly Pick<ConfigText, "name" | "text">[]): Promise<void> {
  const { projects } = readStore(agentboxHome);
  const entry: TrustedFiles = { hash: hashFiles(files), time: new Date().toISOString(), files: files.map(({ name, text }) => ({ name, text })) };
  const kept = Object.entries(projects).filter(([path]) => path !== project);
  await makePrivateDirectory(agentboxHome);
  const store = { version: 1, projects: Object.fromEntries([...kept, [project, entry]]) };
  await writeWhole(findTrustStore(agentboxHome), `${JSON.stringify(store, undefined, 1)}\n`, 0o600);
}

function readStore(agentboxHome: string): z.infer<typeof trustSchema> {
  const file = findTrustStore(agentboxHome);
  const found = readPlainFile(file, MAX_BYTES);
  if ("flaw" in found) {
    if (found.flaw === "missing") return { version: 1, projects: {} };
    throw refuse(file, `the file ${found.detail}`);
  }
  const answer = trustSchema.safeParse(parseJson(found.content.toString("utf8")));
  if (!answer.success) throw refuse(file, "the file is not what agentbox wrote there");
  return answer.data;
}

function refuse(file: string, what: string): ConfigError {
  return new ConfigError({ what, expected: "the record of trusted configurations", fix: "remove it; every project is then asked about once more", place: { file } });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
