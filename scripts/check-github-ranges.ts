import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { parseRange, type Range } from "../policy/address.ts";
import { ConfigError, UsageError, type Complaint } from "../policy/errors.ts";
import { quote } from "../policy/parsed.ts";
import { parseGithubFile } from "../policy/services-file.ts";
import { runScript } from "./edge.ts";

// Exit codes: 0 equal, 1 different, 64 wrong arguments, 78 a file that cannot be read or understood.

const KEYS = ["web", "api", "git"] as const;
const ranges = z.array(z.string());
/** The part of the document that AgentBox uses; it holds much more, and gains keys now and then. */
const metaSchema = z.looseObject({ web: ranges, api: ranges, git: ranges });

function main(argv: readonly string[]): number {
  const { metaFile, listFile } = readArguments(argv);
  const list = parseGithubFile(listFile, readText(listFile));
  const published = readMeta(metaFile);
  const listed = new Set(list.ranges.map(({ text }) => text));
  const added = [...published].filter(([text]) => !listed.has(text));
  const removed = [...listed].filter((text) => !published.has(text));
  for (const [text, uses] of added) print(`+ "${text}"  # ${uses.join(", ")}`);
  for (const text of removed) print(`- "${text}"`);
  const verdict = added.length + removed.length === 0 ? "equal" : `${added.length} to add (+), ${removed.length} no longer published (-)`;
  print(`${listFile} (${list.date}, ${listed.size} ranges) and ${metaFile} (${published.size} ranges): ${verdict}`);
  return added.length + removed.length === 0 ? 0 : 1;
}

function readArguments(argv: readonly string[]): { metaFile: string; listFile: string } {
  const [metaFile, listFile, ...rest] = argv;
  if (metaFile === undefined || metaFile.startsWith("-") || rest.length > 0) {
    throw new UsageError({
      what: argv.length === 0 ? "no file was named" : `cannot use ${quote(argv.join(" "))}`,
      expected: "scripts/check-github-ranges META_FILE [GITHUB_SH]",
      fix: "save the meta document of GitHub's API to a file and name it",
    });
  }
  return { metaFile, listFile: listFile ?? join(import.meta.dirname, "../allowlists/github.sh") };
}

/** Reads the document: each range with the uses it is published for. */
function readMeta(file: string): ReadonlyMap<string, readonly string[]> {
  const document = metaSchema.safeParse(parseJson(file, readText(file)));
  if (!document.success) {
    throw new ConfigError(
      document.error.issues.map(({ path, message }) => ({
        what: `${path.join(".") || "the document"}: ${message}`,
        expected: `an object with the lists ${KEYS.join(", ")}`,
        fix: "save the whole document again",
        place: { file },
      })),
    );
  }
  const complaints: Complaint[] = [];
  const uses = new Map<string, string[]>();
  for (const key of KEYS) {
    document.data[key].forEach((word, index) => {
      const range = parseRange(word);
      if (range.ok) addUse(uses, range.value, key);
      else complaints.push({ ...range.complaint, what: `${key}[${index}]: ${range.complaint.what}`, place: { file } });
    });
  }
  if (complaints.length > 0) throw new ConfigError(complaints);
  return uses;
}

function addUse(uses: Map<string, string[]>, { text }: Range, key: string): void {
  uses.set(text, [...(uses.get(text) ?? []), key]);
}

function parseJson(file: string, text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch (error) {
    const what = `not JSON (${error instanceof Error ? error.message : String(error)})`;
    throw new ConfigError({ what, expected: "GitHub's meta document", fix: "save it again", place: { file } }, { cause: error });
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const what = `cannot be read (${error instanceof Error ? error.message : String(error)})`;
    throw new ConfigError({ what, expected: "a readable file", fix: "check the path", place: { file } }, { cause: error });
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

await runScript(async () => main(process.argv.slice(2)));
