import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../..");

function read(file: string): string {
  return readFileSync(join(ROOT, file), "utf8");
}

describe("the documents", () => {
  it.each(["docs/security.md", "FIREWALL_TEST_PLAN.md"])("%s names only tests that exist", (file) => {
    const names = [...read(file).matchAll(/\b(?:unit|integration|image)\/[\w./-]*\w/g)].map(([name]) => name);
    expect(names.length).toBeGreaterThan(10);
    expect(names.filter((name) => !existsSync(join(ROOT, "test", name)))).toEqual([]);
  });

  it.each(["README.md", "AGENTS.md", "SECURITY.md", ...globSync("docs/**/*.md", { cwd: ROOT })])("%s links only to files that exist", (file) => {
    const links = [...read(file).matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, link = ""]) => link);
    expect(links.filter((link) => !existsSync(join(ROOT, dirname(file), link)))).toEqual([]);
  });

  it("AGENTS.md names only scripts of package.json", () => {
    const scripts = [...read("AGENTS.md").matchAll(/`npm run ([\w:]+)/g)].map(([, name = ""]) => name);
    expect(scripts.length).toBeGreaterThan(3);
    const known: unknown = JSON.parse(read("package.json"));
    expect(known).toMatchObject({ scripts: Object.fromEntries(scripts.map((name) => [name, expect.any(String)])) });
  });
});
