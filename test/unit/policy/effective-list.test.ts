import { describe, expect, test } from "vitest";
import type { PlacedWord } from "../../../policy/allowlist-file.ts";
import { buildEffectiveList, listsName, namesToResolve, renderOrigin, type EffectiveListInput } from "../../../policy/effective-list.ts";
import { parseEntry } from "../../../policy/entry.ts";
import { ConfigError } from "../../../policy/errors.ts";
import { isPublicSuffix } from "../../../policy/public-suffix.ts";

function words(file: string, ...texts: readonly string[]): PlacedWord[] {
  return texts.map((text, index) => ({ text, place: { file, line: index + 1, column: 3 } }));
}

type Lists = { services?: readonly string[]; allow?: readonly string[]; block?: readonly string[]; critical?: readonly string[]; agent?: EffectiveListInput["agent"] };

function build({ services = [], allow = [], block = [], critical = [], agent }: Lists): ReturnType<typeof buildEffectiveList> {
  return buildEffectiveList({
    sources: [
      { label: "services.sh", surface: "allowlist-file", words: words("services.sh", ...services) },
      { label: "allow_hosts", surface: "list", words: allow.map((text) => ({ text })) },
    ],
    blocks: [{ label: "block_hosts", words: block.map((text) => ({ text })) }],
    critical: words("services.sh", ...critical),
    ...(agent === undefined ? {} : { agent }),
    isPublicSuffix,
  });
}

function mistakes(lists: Lists): readonly string[] {
  try {
    build(lists);
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split("\n");
    throw error;
  }
  return [];
}

const texts = (list: ReturnType<typeof build>): readonly string[] => list.entries.map(({ text }) => text);

describe("buildEffectiveList", () => {
  test("merges the same host from two sources, with both origins and the union of the ports", () => {
    const [entry] = build({ services: ["github.com"], allow: ["GitHub.com:8443"] }).entries;
    expect(entry?.text).toBe("github.com:443,8443");
    expect(entry?.origins.map(renderOrigin)).toEqual(["services.sh:1", "allow_hosts"]);
    expect(entry?.origins.map(({ text }) => text)).toEqual(["github.com", "GitHub.com:8443"]);
  });

  test("keeps an entry that speaks TLS apart from one that does not", () => {
    expect(texts(build({ services: ["ssh.example.com", "tcp://ssh.example.com:443"] }))).toEqual(["ssh.example.com", "tcp://ssh.example.com:443"]);
  });

  test("reads *.x by the surface it was written on", () => {
    expect(texts(build({ services: ["*.a.com"], allow: ["*.b.com"] }))).toEqual(["*.a.com", "**.b.com"]);
  });

  test("removes what a block covers and tells which one did it", () => {
    const list = build({ services: ["chatgpt.com", "auth.openai.com", "api.openai.com", "github.com"], block: ["*.openai.com", "chatgpt.com"] });
    expect(texts(list)).toEqual(["github.com"]);
    expect(list.removed.map(({ text, by }) => [text, by.text])).toEqual([
      ["chatgpt.com", "chatgpt.com"],
      ["auth.openai.com", "**.openai.com"],
      ["api.openai.com", "**.openai.com"],
    ]);
  });

  test("keeps a wildcard of which a block takes only a part, and the block", () => {
    const list = build({ services: ["*.openai.com"], block: ["chat.openai.com"] });
    expect(texts(list)).toEqual(["*.openai.com"]);
    expect(list.blocks.map(({ text }) => text)).toEqual(["chat.openai.com"]);
  });

  test("reports every mistake of every source with its place", () => {
    const found = mistakes({ services: ["*foo.com", "ok.com", "*.co.uk"], allow: ["https://x.com"], block: ["a.com:1"], critical: ["gone.com"] });
    expect(found).toHaveLength(5);
    expect(found[0]).toMatch(/^services\.sh:1:3: .*write \*\.foo\.com/);
    expect(found[1]).toMatch(/^services\.sh:3:3: .*opens every domain/);
    expect(found[2]).toMatch(/^allow_hosts: .*write x\.com/);
  });

  test("takes an empty list", () => {
    expect(build({}).entries).toEqual([]);
  });
});

describe("critical services", () => {
  const services = ["api.anthropic.com", "github.com", "*.githubcopilot.com", "api.openai.com"];

  test("must be in the list", () => {
    expect(mistakes({ services: ["github.com"], critical: ["api.anthropic.com"] })[0]).toContain("not in the effective list");
  });

  test("that a block removed are named together with the block", () => {
    expect(mistakes({ services: ["github.com"], block: ["github.com"], critical: ["github.com"] })[0]).toContain('removed by the block "github.com"');
  });

  test("must be open on the port they name", () => {
    expect(mistakes({ services: ["github.com"], critical: ["github.com:8443"] })[0]).toContain("github.com:8443");
  });

  test("cannot be wildcards", () => {
    expect(mistakes({ services: ["*.example.com"], critical: ["*.example.com"] })[0]).toContain("not a plain name");
  });

  test("may be held by a wildcard", () => {
    expect(build({ services, critical: ["api.githubcopilot.com"] }).critical.map(({ name, port }) => [name, port])).toEqual([["api.githubcopilot.com", 443]]);
  });

  test("of another agent take the place of api.anthropic.com", () => {
    const list = build({ services, critical: ["api.anthropic.com", "github.com"], agent: { name: "codex", critical: "api.openai.com" } });
    expect(list.critical.map(({ name }) => name)).toEqual(["api.openai.com", "github.com"]);
  });

  test("stay as shipped for an agent without a critical host", () => {
    const list = build({ services, critical: ["api.anthropic.com", "github.com"], agent: { name: "shell", critical: null } });
    expect(list.critical.map(({ name }) => name)).toEqual(["api.anthropic.com", "github.com"]);
  });

  test("stay empty when the user emptied them, whatever the agent", () => {
    expect(build({ services, critical: [], agent: { name: "codex", critical: "api.openai.com" } }).critical).toEqual([]);
  });
});

describe("the parts that resolution needs", () => {
  test.each([
    ["a name is resolved itself", "example.com", ["example.com"]],
    ["a wildcard by its apex and a probe", "*.example.com", ["example.com", "agentbox-wildcard-probe.example.com"]],
    ["an address not at all", "192.0.2.1", []],
  ])("%s", (_row, text, names) => {
    const entry = parseEntry(text, "allowlist-file");
    expect(entry.ok && namesToResolve(entry.value)).toEqual(names);
  });

  test("a name is listed on the ports of its entry only", () => {
    const list = build({ services: ["github.com", "*.example.com:8443"] });
    expect([listsName(list, "github.com", 443), listsName(list, "github.com", 22), listsName(list, "a.example.com", 8443)]).toEqual([true, false, true]);
  });
});
