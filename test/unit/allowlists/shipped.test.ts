import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, test } from "vitest";
import { rangesOverlap } from "../../../policy/address.ts";
import { AGENT_PROFILES } from "../../../policy/agent-profile-data.ts";
import { classifyAddress } from "../../../policy/address-class.ts";
import { buildEffectiveList, listsName } from "../../../policy/effective-list.ts";
import { parsePreset, type Preset } from "../../../policy/preset.ts";
import { isPublicSuffix } from "../../../policy/public-suffix.ts";
import { parseGithubFile, parseServicesFile } from "../../../policy/services-file.ts";
import { SPECIAL_RANGES_DATE } from "../../../policy/special-ranges.ts";

const root = join(import.meta.dirname, "../../..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

const services = parseServicesFile("allowlists/services.sh", read("allowlists/services.sh"));
const github = parseGithubFile("allowlists/github.sh", read("allowlists/github.sh"));
const page = read("docs/network.md");
const presets: readonly Preset[] = readdirSync(join(root, "allowlists/presets")).map((name) => {
  return parsePreset(basename(name, ".sh"), `allowlists/presets/${name}`, read(`allowlists/presets/${name}`));
});

/** The entries in the table below a heading of docs/network.md; undefined without that heading. */
function documented(title: string): readonly string[] | undefined {
  const section = page.split(/^#{2,3} /m).find((text) => text.startsWith(`${title}\n`));
  return section?.split("\n").flatMap((line) => {
    const [, entry, why, data, date] = line.split("|").map((cell) => cell.trim());
    return entry?.startsWith("`") === true && why && data && /^\d{4}-\d{2}$/.test(date ?? "") ? [entry.replaceAll("`", "")] : [];
  });
}

describe("allowlists/services.sh", () => {
  test("holds the defaults that every box was promised", () => {
    const texts = services.allowed.map(({ text }) => text);
    for (const name of ["api.openai.com", "platform.openai.com", "chatgpt.com", "chat.openai.com", "auth.openai.com", "api.anthropic.com"]) expect(texts).toContain(name);
    expect(services.critical.map(({ text }) => text)).toEqual(["api.anthropic.com", "github.com"]);
  });

  test("makes an effective list with every agent, without a wildcard of its own", () => {
    expect(services.allowed.some(({ text }) => text.includes("*"))).toBe(false);
    for (const profile of AGENT_PROFILES) {
      const agentWords = profile.hosts.map(({ entry }) => ({ text: entry }));
      const list = buildEffectiveList({
        sources: [
          { label: "services.sh", surface: "allowlist-file", words: services.allowed },
          { label: profile.name, surface: "allowlist-file", words: agentWords },
        ],
        critical: services.critical,
        agent: profile,
        isPublicSuffix,
      });
      expect(list.critical.map(({ name }) => name)).toEqual([profile.critical ?? "api.anthropic.com", "github.com"]);
      expect(listsName(list, "github.com", 443)).toBe(true);
    }
  });

  test("has every entry and no other in docs/network.md", () => {
    expect(documented("`services.sh`")?.toSorted()).toEqual(services.allowed.map(({ text }) => text).toSorted());
  });
});

describe("allowlists/github.sh", () => {
  test("holds public blocks that do not overlap", () => {
    expect(github.ranges.length).toBeGreaterThan(50);
    for (const [index, range] of github.ranges.entries()) {
      expect({ range: range.text, is: classifyAddress({ family: range.family, value: range.base, text: range.text }).kind }).toEqual({ range: range.text, is: "public" });
      expect(github.ranges.slice(index + 1).filter((other) => rangesOverlap(range, other))).toEqual([]);
    }
  });

  test("has its date in docs/network.md", () => {
    expect(page).toContain(`published on ${github.date}`);
  });
});

describe.each(AGENT_PROFILES.filter(({ hosts }) => hosts.length > 0))("the hosts of agent $name", ({ name, hosts, critical }) => {
  test("stand in docs/network.md, every one and no other", () => {
    expect(documented(`agent \`${name}\``)?.toSorted()).toEqual(hosts.map(({ entry }) => entry).toSorted());
    expect(page).toContain(critical === null ? "No critical host of its own" : `Critical: \`${critical}\``);
  });
});

describe("the presets", () => {
  test("are the promised ones", () => {
    const ids = presets.map(({ id }) => id).toSorted();
    expect(ids).toEqual(["containers", "development", "dotnet", "editors", "git-hosts", "github-only", "go", "java", "lockdown", "playwright", "ruby", "rust", "unrestricted"]);
    expect(presets.filter(({ catchAll }) => catchAll === "allow").map(({ id }) => id)).toEqual(["unrestricted"]);
  });

  test.each(presets)("$id has a title, a description, a date, entries that merge, and its lines in docs/network.md", ({ id, title, description, date, entries }) => {
    expect([title, description]).toEqual([expect.stringMatching(/\w/), expect.stringMatching(/\w/)]);
    expect(date).toMatch(/^\d{4}-\d{2}-\d{2}$/);
    const list = buildEffectiveList({ sources: [{ label: id, surface: "allowlist-file", words: entries }], critical: [], isPublicSuffix });
    expect(list.entries).toHaveLength(entries.length);
    expect((documented(`preset \`${id}\``) ?? []).toSorted()).toEqual(entries.map(({ text }) => text).toSorted());
  });
});

test("docs/network.md names the date of the special-purpose registries", () => {
  expect(page).toContain(`state of ${SPECIAL_RANGES_DATE}`);
});

test("docs/network.md has no section for a list that is not shipped", () => {
  const sections = [...page.matchAll(/^### (agent|preset) `(?<name>.*)`$/gm)].map((match) => match.groups?.["name"] ?? "");
  const known = [...AGENT_PROFILES.map(({ name }) => name), ...presets.map(({ id }) => id)];
  expect(sections.filter((name) => !known.includes(name))).toEqual([]);
});
