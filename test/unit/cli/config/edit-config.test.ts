import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { describeConfigFile, writeConfigFile } from "../../../../cli/config/edit-config.ts";
import { ConfigError } from "../../../../policy/errors.ts";

const root = path.join(import.meta.dirname, "../../../..");
let top: string;
let project: string;
let elsewhere: string;
let host: { home: string; agentboxHome: string; root: string };

beforeEach(() => {
  top = realpathSync(mkdtempSync(path.join(tmpdir(), "agentbox edit ")));
  project = path.join(top, "outer/project");
  elsewhere = path.join(top, "elsewhere");
  host = { home: top, agentboxHome: path.join(top, ".agentbox"), root };
  for (const directory of [project, path.join(elsewhere, ".agentbox")]) mkdirSync(directory, { recursive: true });
});

afterEach(() => rmSync(top, { recursive: true, force: true }));

const configFile = (): string => path.join(project, ".agentbox/config.toml");

async function write(text: string): Promise<unknown> {
  return await writeConfigFile(describeConfigFile(host, project, false), text).catch((error: unknown) => error);
}

describe("the project's file is written", () => {
  test("into a directory that is made for it", async () => {
    expect(await write("[network]\n")).toBeUndefined();
    expect(readFileSync(configFile(), "utf8")).toBe("[network]\n");
    expect(readdirSync(path.dirname(configFile()))).toEqual(["config.toml"]);
  });

  test("and not what links under the names of drafts lead to, which a project may come with", async () => {
    const victim = path.join(top, ".bashrc");
    writeFileSync(victim, "# the user's own\n");
    mkdirSync(path.dirname(configFile()));
    for (const name of [`config.toml.${process.pid}.new`, "config.toml.new"]) symlinkSync(victim, path.join(path.dirname(configFile()), name));
    expect(await write("[network]\n")).toBeUndefined();
    expect(readFileSync(victim, "utf8")).toBe("# the user's own\n");
    expect(readFileSync(configFile(), "utf8")).toBe("[network]\n");
  });

  test.each([
    { name: ".agentbox", exchange: () => symlinkSync(path.join(elsewhere, ".agentbox"), path.join(project, ".agentbox")) },
    { name: "the project, as a box of the directory above can", exchange: () => (renameSync(project, `${project}.old`), symlinkSync(elsewhere, project)) },
    { name: "what lies above it", exchange: () => (renameSync(path.dirname(project), path.join(top, "moved")), mkdirSync(path.join(elsewhere, "project/.agentbox"), { recursive: true }), symlinkSync(elsewhere, path.dirname(project))) },
  ])("and never through a link in place of $name", async ({ exchange }) => {
    exchange();
    const failure = await write("[network]\n");
    expect(failure).toBeInstanceOf(ConfigError);
    expect(failure).toMatchObject({ exitCode: 78, message: expect.stringMatching(/^\.agentbox\/config\.toml: .*is a link/) });
    expect([".agentbox/config.toml", "project/.agentbox/config.toml"].map((name) => existsSync(path.join(elsewhere, name)))).toEqual([false, false]);
  });
});
