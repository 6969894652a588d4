import { readlinkSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { ConfigError } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import { readPathFact, resolvePath } from "../workspace/path-fact.ts";
import { readPlainFile } from "../workspace/plain-file.ts";

/** A file that decides about a box: how messages call it, where it is, and its text as it was read. */
export type ConfigText = { name: string; path: string; text: string };

type TextQuery = {
  name: string;
  path: string;
  /** A directory that the file's own directory has to be, with every link resolved; undefined where any will do. */
  within?: string | undefined;
  kind?: keyof typeof MAX_BYTES;
};

/** Bundles of authorities are larger than anything that people write. */
const MAX_BYTES = { text: 1024 * 1024, certificates: 8 * 1024 * 1024 };
const FIXES = { missing: "try again", special: "replace it by a file", large: "shorten it", unreadable: "correct its permissions" } as const;

/**
 * Reads a file that decides about a box; undefined when there is none. Links are not followed: one that an
 * earlier session planted would make any file of the host speak here, and show its lines in messages.
 * Throws ConfigError for a link, for what is no plain file, and for one that is unreadable or too large.
 */
export function readConfigText({ name, path, within, kind: content = "text" }: TextQuery): ConfigText | undefined {
  const directory = dirname(path);
  const { kind } = readPathFact(path);
  if (kind === "missing") {
    // The directory itself may be a link that leads nowhere just now.
    if (within !== undefined && readPathFact(directory).kind === "link") throw refuseLink(name, directory);
    return undefined;
  }
  if (within !== undefined && resolvePath(directory) !== within) throw refuseLink(name, directory);
  if (kind === "link") throw refuseLink(name, path);
  const found = readPlainFile(path, MAX_BYTES[content]);
  if ("flaw" in found) throw refuse(name, `the file ${found.detail}`, FIXES[found.flaw]);
  const text = decode(found.content);
  if (text === undefined) throw refuse(name, "the file is not UTF-8 text", "save it as UTF-8");
  return { name, path, text };
}

/** Resolves the links of the directories above a file, so that its place can be judged; the file itself may be missing. */
export function resolveParent(path: string): string {
  const parent = resolvePath(dirname(path));
  return parent === null ? path : join(parent, basename(path));
}

function decode(content: Buffer): string | undefined {
  try {
    // The mark at the beginning stays, for the parser to judge.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    return undefined;
  }
}

function refuseLink(name: string, path: string): ConfigError {
  const target = readPathFact(path).kind === "link" ? readlinkSync(path) : (resolvePath(path) ?? "nowhere");
  return refuse(name, `${quotePath(path)} is a link to ${quotePath(target)}`, "replace the link by what it leads to");
}

function refuse(name: string, what: string, fix: string): ConfigError {
  return new ConfigError({ what, expected: "a plain text file", fix, place: { file: name } });
}
