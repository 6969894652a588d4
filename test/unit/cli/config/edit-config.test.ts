import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { describeConfigFile, editConfig, type EditOutcome, writeConfigFile } from "../../../../cli/config/edit-config.ts";
import { readConfig } from "../../../../cli/config/read-config.ts";
import { judgeTrust, trustProject } from "../../../../cli/config/trust.ts";
import type { Host } from "../../../../cli/host.ts";
import { ConfigError } from "../../../../policy/errors.ts";

const root = path.join(import.meta.dirname, "../../../..");
let top: string;
let project: string;
let elsewhere: string;
let host: Host;

beforeEach(() => {
  top = realpathSync(mkdtempSync(path.join(tmpdir(), "agentbox edit ")));
  project = path.join(top, "outer/project");
  elsewhere = path.join(top, "elsewhere");
  host = { home: top, agentboxHome: path.join(top, ".agentbox"), root, env: {}, cwd: project, user: { uid: 1000, gid: 1000 }, terminal: false };
  for (const directory of [project, path.join(elsewhere, ".agentbox")]) mkdirSync(directory, { recursive: true });
});

afterEach(() => rmSync(top, { recursive: true, force: true }));

const configFile = (): string => path.join(project, ".agentbox/config.toml");

async function write(text: string): Promise<unknown> {
  return await writeConfigFile(describeConfigFile(host, project, false), { before: undefined, text }).catch((error: unknown) => error);
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

const judged = '[network]\nallow_hosts = ["one.example.com"]\n';
const edited = '[network]\nallow_hosts = ["one.example.com", "two.example.com"]\n';
const evil = '[network]\nmode = "full"\n';

/** Edits what is read now; `meanwhile` happens after it was judged. */
async function edit(text: string, meanwhile: () => void = () => undefined): Promise<EditOutcome> {
  return await editConfig({ host, config: await readConfig({ host, projectPath: project }), edit: () => (meanwhile(), text) });
}

async function complain(text: string, meanwhile?: () => void): Promise<string> {
  const failure: unknown = await edit(text, meanwhile).catch((error: unknown) => error);
  return failure instanceof ConfigError ? failure.message : `no refusal: ${String(failure)}`;
}

function put(text: string, name = "config.toml"): void {
  mkdirSync(path.join(project, ".agentbox"), { recursive: true });
  writeFileSync(path.join(project, ".agentbox", name), text);
}

async function trust(): Promise<void> {
  await trustProject(host, await readConfig({ host, projectPath: project }));
}

async function judge(): Promise<string> {
  return judgeTrust(host, await readConfig({ host, projectPath: project })).kind;
}

describe("an edit", () => {
  test("of what is trusted is trusted", async () => {
    put(judged);
    await trust();
    expect(await edit(edited)).toMatchObject({ changed: true, created: false, config: { ofProject: true } });
    expect(readFileSync(configFile(), "utf8")).toBe(edited);
    expect(await judge()).toBe("trusted");
  });

  test("of what nobody agreed to writes nothing and names the command", async () => {
    put(judged);
    expect(await complain(edited)).toMatch(/you did not agree to this file.*agentbox policy trust/);
    expect(readFileSync(configFile(), "utf8")).toBe(judged);
    expect(await judge()).toBe("untrusted");
  });

  test.each([
    { name: "was changed", before: judged, meanwhile: () => put(evil) },
    { name: "came", before: undefined, meanwhile: () => put(evil) },
    { name: "was taken away", before: judged, meanwhile: () => rmSync(configFile()) },
  ])("of a file that $name since it was judged writes and trusts nothing", async ({ before, meanwhile }) => {
    if (before !== undefined) {
      put(before);
      await trust();
    }
    expect(await complain(edited, meanwhile)).toMatch(/was changed while this command looked at it/);
    expect(existsSync(configFile()) ? readFileSync(configFile(), "utf8") : undefined).not.toBe(edited);
    put(edited);
    expect(await judge()).toBe("untrusted");
  });

  test("trusts the file of hosts as it was judged, and not what it says meanwhile", async () => {
    put('[network]\nallow_file = "list"\n');
    put("one.example.com\n", "list");
    await trust();
    const text = '[network]\nallow_file = "list"\nallow_hosts = ["two.example.com"]\n';
    const { config } = await edit(text, () => put("one.example.com\nevil.example.net\n", "list"));
    expect(config.files.map((file) => file.text)).toEqual([text, "one.example.com\n"]);
    expect(await judge()).toBe("untrusted");
    put("one.example.com\n", "list");
    expect(await judge()).toBe("trusted");
  });

  test("of the user's own file counts without a project's that came meanwhile", async () => {
    mkdirSync(host.agentboxHome);
    writeFileSync(path.join(host.agentboxHome, "config.toml"), judged);
    const { config, file } = await edit(edited, () => put(evil));
    expect({ file, ofProject: config.ofProject, mode: config.mode }).toEqual({ file: "~/.agentbox/config.toml", ofProject: false, mode: "allowlist" });
    expect(await judge()).toBe("untrusted");
  });
});
