import { chmodSync, mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runHostCommand } from "../../../../cli/environment/host-command.ts";
import { readConfig, type SessionConfig } from "../../../../cli/config/read-config.ts";
import { ConfigError } from "../../../../policy/errors.ts";

const root = path.join(import.meta.dirname, "../../../..");
const agent = { name: "shell", hosts: [], critical: null };
let top: string;
let project: string;
let home: string;
let outside: string;

beforeEach(() => {
  top = realpathSync(mkdtempSync(path.join(tmpdir(), "agentbox config ")));
  project = path.join(top, "project");
  home = path.join(top, "home");
  outside = path.join(top, "outside");
  for (const directory of [project, home, outside, path.join(project, ".agentbox"), path.join(home, ".agentbox")]) mkdirSync(directory);
});

afterEach(() => rmSync(top, { recursive: true, force: true }));

async function read(addDirs: readonly string[] = []): Promise<SessionConfig> {
  return await readConfig({ host: { home, agentboxHome: path.join(home, ".agentbox"), root }, projectPath: project, addDirs });
}

async function complain(addDirs: readonly string[] = []): Promise<string> {
  const failure: unknown = await read(addDirs).catch((error: unknown) => error);
  if (failure instanceof ConfigError) return failure.message;
  throw new Error(`expected a ConfigError, got ${String(failure)}`);
}

function writeProject(text: string, name = "config.toml"): void {
  writeFileSync(path.join(project, ".agentbox", name), text);
}

function writeUser(text: string): void {
  writeFileSync(path.join(home, ".agentbox/config.toml"), text);
}

function wordsOf(config: SessionConfig): string[] {
  return config.document(agent).sources.flatMap(({ label, words }) => words.map(({ text }) => `${label}: ${text}`));
}

describe("which file counts", () => {
  test("neither: nothing is configured", async () => {
    expect(await read()).toMatchObject({ config: {}, source: undefined, files: [], ofProject: false });
  });

  test("the user's own, when the project has none; it needs no trust", async () => {
    writeUser('network.allow_hosts = ["user.example.com"]\n');
    const config = await read();
    expect(config).toMatchObject({ source: "~/.agentbox/config.toml", ofProject: false, files: [] });
    expect(wordsOf(config)).toEqual(["~/.agentbox/config.toml: user.example.com"]);
  });

  test("the project's, with the user's blocks and the user's word on what is required", async () => {
    writeUser('[network]\nallow_hosts = ["user.example.com"]\nblock_hosts = ["bad.example.com"]\nrequired = true\n');
    writeProject('[network]\nallow_hosts = ["project.example.com"]\nrequired = false\n');
    const config = await read();
    expect(wordsOf(config)).toEqual([".agentbox/config.toml: project.example.com"]);
    expect(config.document(agent).blocks).toMatchObject([{ label: "~/.agentbox/config.toml", words: [{ text: "bad.example.com", place: { line: 3 } }] }]);
    expect(config.userConfig.network?.required).toBe(true);
    expect(config.notices.join()).toMatch(/required counts in ~\/\.agentbox\/config\.toml only/);
  });

  test("changes of a session are added with their end", async () => {
    const document = (await read()).document(agent, { allow: [{ text: "a.example.com", until: 5 }], deny: [{ text: "b.example.com" }] });
    expect(document).toMatchObject({ sources: [{ label: "policy allow", words: [{ text: "a.example.com", until: 5 }] }], blocks: [{ label: "policy deny" }] });
  });
});

describe("mistakes", () => {
  test("of both files are told at once, each with file, line and caret", async () => {
    writeUser("[network]\nblock_host = []\n");
    writeProject('[network]\nallow_hosts = ["*.com"]\nmod = "full"\n');
    const said = await complain();
    expect(said).toMatch(/\.agentbox\/config\.toml:3:1: .*"mod".*did you mean mode[^]*\^/);
    expect(said).toMatch(/~\/\.agentbox\/config\.toml:2:1: .*block_hosts/);
  });

  test("of the user's file count although the project's is the one that counts", async () => {
    writeUser("half = \n");
    writeProject("[network]\n");
    expect(await complain()).toMatch(/^~\/\.agentbox\/config\.toml:\d/);
  });

  test("a preset that does not exist is told with the nearest one", async () => {
    writeProject('[network]\npresets = ["rusty"]\n');
    expect(await complain()).toMatch(/there is no preset "rusty".*did you mean rust\?/);
  });
});

describe("files that are no plain files", () => {
  const secret = "the-secret";

  test.each([
    { name: "a link to a file of the host, as an agent may plant it", make: (file: string) => symlinkSync(path.join(outside, "secret"), file), said: /is a link to ".*\/outside\/secret"; .*fix: replace the link/ },
    { name: "a link that leads nowhere", make: (file: string) => symlinkSync(path.join(outside, "missing"), file), said: /is a link to/ },
    { name: "a directory", make: (file: string) => mkdirSync(file), said: /is not a plain file/ },
    { name: "more than a mebibyte", make: (file: string) => writeFileSync(file, "#".repeat(1024 * 1024 + 1)), said: /more than 1048576 bytes/ },
    { name: "bytes that are no text", make: (file: string) => writeFileSync(file, Buffer.from([0xff, 0xfe])), said: /not UTF-8/ },
    { name: "half of a file", make: (file: string) => writeFileSync(file, '[network]\nallow_hosts = ["a.example'), said: /config\.toml:2/ },
  ])("$name: refused with its name, and nothing of it is told", async ({ make, said }) => {
    writeFileSync(path.join(outside, "secret"), `${secret} = 1\n`);
    make(path.join(project, ".agentbox/config.toml"));
    const message = await complain();
    expect(message).toMatch(said);
    expect(message).toMatch(/^\.agentbox\/config\.toml/);
    expect(message).not.toContain(secret);
  });

  test("a pipe, which would be waited on for ever", async () => {
    await runHostCommand(["mkfifo", path.join(project, ".agentbox/config.toml")]);
    expect(await complain()).toMatch(/^\.agentbox\/config\.toml: .*is not a plain file/);
  });

  test("a directory .agentbox that is a link is refused with its target", async () => {
    writeProject("[network]\n");
    renameSync(path.join(project, ".agentbox"), path.join(outside, "real"));
    symlinkSync(path.join(outside, "real"), path.join(project, ".agentbox"));
    expect(await complain()).toMatch(/\.agentbox" is a link to ".*outside\/real"/);
  });

  test("a file that may not be read", async () => {
    writeProject("[network]\n");
    chmodSync(path.join(project, ".agentbox/config.toml"), 0);
    chmodSync(top, 0o755);
    // Root may read everything.
    const isRoot = process.getuid?.() === 0;
    if (isRoot) process.seteuid?.(65_534);
    try {
      expect(await complain()).toMatch(/^\.agentbox\/config\.toml: .*cannot be read \(EACCES\)/);
    } finally {
      if (isRoot) process.seteuid?.(0);
    }
  });
});

function named(file: string): string {
  return `[network]\nallow_file = ${JSON.stringify(file)}\n`;
}

describe("allow_file", () => {
  test("is read relative to the file that names it, and counts as part of it", async () => {
    writeProject(named("extra.txt"));
    writeProject("# ours\none.example.com\n\n*.two.example.com # all\n", "extra.txt");
    const config = await read();
    expect(wordsOf(config)).toEqual(["allow_file .agentbox/extra.txt: one.example.com", "allow_file .agentbox/extra.txt: *.two.example.com"]);
    expect(config.files.map(({ name }) => name)).toEqual([".agentbox/config.toml", ".agentbox/extra.txt"]);
    expect(config.watched).toContain(path.join(project, ".agentbox/extra.txt"));
  });

  test("may lie anywhere that no box writes", async () => {
    writeFileSync(path.join(outside, "list"), "one.example.com\n");
    writeProject(named(path.join(outside, "list")));
    expect(wordsOf(await read())).toHaveLength(1);
  });

  test.each([
    { name: "in the project", file: "../hosts.txt" },
    { name: "in the project by way of a link to its directory", file: "../../link/hosts.txt" },
    { name: "in an added directory", file: "../../outside/hosts.txt", added: true },
    { name: "in a directory that the file itself adds", file: "../../outside/hosts.txt", more: '[box]\nadd_dirs = ["../outside"]\n' },
  ])("is refused $name, with its line", async ({ file, added = false, more = "" }) => {
    symlinkSync(project, path.join(top, "link"));
    for (const directory of [project, outside, path.join(project, ".agentbox")]) writeFileSync(path.join(directory, "hosts.txt"), "evil.example.com\n");
    writeProject(`${named(file)}${more}`);
    expect(await complain(added ? [outside] : [])).toMatch(/^\.agentbox\/config\.toml:2:14: allow_file .* which boxes may write/);
  });

  test("that is a link is refused with its target", async () => {
    symlinkSync("/etc/hostname", path.join(project, ".agentbox/extra.txt"));
    writeProject(named("extra.txt"));
    expect(await complain()).toMatch(/^\.agentbox\/extra\.txt: .* is a link to "\/etc\/hostname"/);
  });

  test("that is missing is told where it is named", async () => {
    writeProject(named("extra.txt"));
    expect(await complain()).toMatch(/^\.agentbox\/config\.toml:2:14: allow_file "extra\.txt" does not exist/);
  });
});
