import { listNames, type OptionReading, readOptions, valuesOf, hasOption } from "./command-options.ts";
import { findRepository } from "./preflight-git.ts";
import type { HostNeed, Need } from "./preflight-need.ts";
import { readAuthority, readUrl } from "./preflight-place.ts";
import { REGISTRY_TOOLS, type RegistryTool } from "./preflight-registry-data.ts";

type Call = { program: string; words: readonly string[]; variables: ReadonlyMap<string, string> };

/** Finds what a package manager asks: its registry, the one named in its place, and packages that are URLs or repositories. Undefined for other programs. */
export function findRegistryNeeds(call: Call): Need[] | undefined {
  const rows = REGISTRY_TOOLS.filter(({ programs }) => listNames(programs).has(call.program));
  return rows.length === 0 ? undefined : rows.flatMap((row) => findRowNeeds(row, call));
}

function findRowNeeds(row: RegistryTool, call: Call): Need[] {
  const { program, words, variables } = call;
  const replacing = namesOf(row.replacing);
  const adding = namesOf(row.adding);
  const reading = readOptions(words, { valued: new Set([...replacing, ...adding, ...namesOf(row.valued)]) });
  if (!asks(row, reading) || hasOption(reading, namesOf(row.offline))) return [];
  const packages = reading.operands.flatMap((word) => findPackage(program, word, variables));
  const named = [...valuesOf(reading, replacing), ...valuesOf(reading, adding)].flatMap((text) => readRegistry(program, text, "url"));
  const set = [...namesOf(row.variables)].flatMap((name) => variables.get(name) ?? []);
  const replaced = hasOption(reading, replacing) || set.length > 0;
  const others = hasOption(reading, replacing) ? [] : set.flatMap((text) => readRegistry(program, text, "remote"));
  return [...packages, ...named, ...others, ...(replaced ? [] : [...namesOf(row.hosts)].flatMap((text) => readRegistry(program, text, "default")))];
}

/** Without a word `yarn` installs. */
function asks({ programs, verbs }: RegistryTool, { operands, options }: OptionReading): boolean {
  const [first, second] = operands;
  if (first === undefined) return programs === "yarn" && options.every(({ name }) => !/^-(?:v|h|-version|-help)$/.test(name));
  if (verbs === "") return true;
  const known = listNames(verbs);
  return known.has(first) || known.has(`${first}/${second ?? ""}`);
}

function namesOf(text: string | undefined): ReadonlySet<string> {
  return text === undefined ? new Set() : listNames(text);
}

/** A registry is a URL; what we list ourselves and what `gh` takes is a host. */
function readRegistry(program: string, text: string, form: HostNeed["form"]): Need[] {
  const url = readUrl(text);
  if (url !== undefined) return [{ kind: "host", program, form, ...url }];
  const place = program === "gh" || form === "default" ? readAuthority(text, 443) : undefined;
  return place === undefined ? [] : [{ kind: "host", program, ...place, form: form === "url" ? "remote" : form, web: place.port === 80 ? "http" : "https" }];
}

/** `github:user/repo` of npm and its like; else a URL or a repository. */
function findPackage(program: string, word: string, variables: ReadonlyMap<string, string>): Need[] {
  const forge = /^(?:@?[\w./-]+@)?(?<name>github|gitlab|bitbucket):[\w.-]+\//.exec(word)?.groups?.["name"];
  if (forge !== undefined) return [{ kind: "host", program, form: "remote", host: forge === "bitbucket" ? "bitbucket.org" : `${forge}.com`, port: 443, web: "https" }];
  const isRepository = /^[\w.-]+@[\w.-]+:(?!\/\/)/.test(word) || word.includes("://");
  return isRepository ? findRepository(program, word, variables) : [];
}
