import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readConfig } from "../../../../cli/config/read-config.ts";
import { judgeTrust, requireTrust, trustProject } from "../../../../cli/config/trust.ts";
import { ConfigError } from "../../../../policy/errors.ts";

const root = path.join(import.meta.dirname, "../../../..");
let top: string;
let project: string;
let host: { home: string; agentboxHome: string; root: string };

beforeEach(() => {
  top = realpathSync(mkdtempSync(path.join(tmpdir(), "agentbox trust ")));
  project = path.join(top, "project");
  host = { home: top, agentboxHome: path.join(top, ".agentbox"), root };
  mkdirSync(path.join(project, ".agentbox"), { recursive: true });
});

afterEach(() => rmSync(top, { recursive: true, force: true }));

function write(text: string, name = "config.toml"): void {
  writeFileSync(path.join(project, ".agentbox", name), text);
}

async function judge(): Promise<string> {
  return judgeTrust(host, await readConfig({ host, projectPath: project })).kind;
}

async function ask(answer: boolean | undefined): Promise<{ asked: string[]; failure: unknown }> {
  const asked: string[] = [];
  const query = answer === undefined ? undefined : async (question: string): Promise<boolean> => (asked.push(question), answer);
  const config = await readConfig({ host, projectPath: project });
  const failure: unknown = await requireTrust({ host, config, ask: query }).catch((error: unknown) => error);
  return { asked, failure };
}

const widening = '[network]\nallow_hosts = ["new.example.com"]\n';

describe("a project file", () => {
  test("that is not there needs no trust", async () => {
    expect(await judge()).toBe("unneeded");
  });

  test("that only removes needs none", async () => {
    write('[network]\nblock_hosts = ["chatgpt.com"]\n');
    expect(await ask(undefined)).toEqual({ asked: [], failure: undefined });
  });

  test("that widens is refused where nobody can be asked, with the command that trusts it", async () => {
    write(widening);
    const { failure } = await ask(undefined);
    expect(failure).toBeInstanceOf(ConfigError);
    expect(failure).toMatchObject({ exitCode: 78, message: expect.stringMatching(/^\.agentbox\/config\.toml: .*new\.example\.com.*agentbox policy trust/) });
    expect(await judge()).toBe("untrusted");
  });

  test("is shown with the lines that differ, and trusted by a yes", async () => {
    write(widening);
    const { asked, failure } = await ask(true);
    expect(failure).toBeUndefined();
    expect(asked.join()).toMatch(/\+ ?allow_hosts = \["new\.example\.com"\][^]*allow_hosts: \+ new\.example\.com/);
    expect(await judge()).toBe("trusted");
    expect(await ask(undefined)).toEqual({ asked: [], failure: undefined });
  });

  test("stays untrusted after a no", async () => {
    write(widening);
    expect((await ask(false)).failure).toBeInstanceOf(ConfigError);
    expect(await judge()).toBe("untrusted");
  });

  test("that changed after it was trusted is asked about again, with the difference alone", async () => {
    write(widening);
    await ask(true);
    write('[network]\nallow_hosts = ["new.example.com", "evil.example.net"]\n');
    const { asked } = await ask(false);
    expect(asked.join()).toMatch(/allow_hosts: \+ evil\.example\.net/);
    expect(asked.join()).not.toMatch(/allow_hosts: \+ new\.example\.com/);
  });

  test("counts with what its allow_file says", async () => {
    write('[network]\nallow_file = "list"\n');
    write("one.example.com\n", "list");
    await ask(true);
    expect(await judge()).toBe("trusted");
    write("one.example.com\ntwo.example.com\n", "list");
    expect((await ask(undefined)).failure).toMatchObject({ message: expect.stringContaining("two.example.com") });
  });

  test("that names a file of the user outside the project repeats nothing of its lines", async () => {
    const netrc = path.join(top, ".netrc");
    writeFileSync(netrc, "machine example.com password hunter2\nhunter3\n");
    write('[network]\nallow_file = "~/.netrc"\n');
    const { failure, asked } = await ask(true);
    expect(failure).toBeInstanceOf(ConfigError);
    expect(String(failure)).toMatch(/\.netrc:1: the line is no entry/);
    expect(String(failure) + asked.join()).not.toMatch(/hunter|machine/);
    expect(await judge().catch(String)).not.toMatch(/hunter|machine/);
  });

  test("shows the hosts of a list outside the project, and not its lines", async () => {
    writeFileSync(path.join(top, "list"), "one.example.com # hunter2\n");
    write('[network]\nallow_file = "~/list"\n');
    const asked = (await ask(true)).asked.join();
    expect(asked).toMatch(/\/list\n\(its lines are not shown/);
    expect(asked).toMatch(/allow_file \S.*list: \+ one\.example\.com/);
    expect(asked).not.toContain("hunter2");
    expect(await judge()).toBe("trusted");
  });

  test("shows nothing of a certificate outside the project, which may be a key", async () => {
    writeFileSync(path.join(top, "key.pem"), "hunter2\n");
    write('[build]\nca_file = "~/key.pem"\n');
    const asked = (await ask(false)).asked.join();
    expect(asked).toContain("key.pem: changed");
    expect(asked).not.toContain("hunter2");
  });

  test("shows the mistakes of its own list with the line", async () => {
    write('[network]\nallow_file = "list"\n');
    write("*foo.com\n", "list");
    expect(String((await ask(undefined)).failure)).toMatch(/\.agentbox\/list:1:1: [^]*1 \| \*foo\.com/);
  });

  test("is trusted as it was read, whatever an agent makes of it meanwhile", async () => {
    write(widening);
    const config = await readConfig({ host, projectPath: project });
    write('[network]\nmode = "full"\n');
    await trustProject(host, config);
    expect(await judge()).toBe("untrusted");
  });

  test("cannot show what a terminal would obey, nor lines that are not its own", async () => {
    write('[network]\nallow_hosts = ["new.example.com"] # \u{202e}\u{9b}2J\n');
    expect((await ask(false)).asked.join()).not.toMatch(/[\u{80}-\u{9f}\u{202e}]/u);
  });
});

describe("the record of trust", () => {
  test("is the owner's alone, and keeps what other projects trusted", async () => {
    write(widening);
    await ask(true);
    const file = path.join(host.agentboxHome, "trust.json");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await trustProject(host, { projectPath: "/other", files: [] });
    expect(await judge()).toBe("trusted");
  });

  test("trusts one project and not another one with the same text", async () => {
    write(widening);
    await ask(true);
    expect(judgeTrust(host, { ...(await readConfig({ host, projectPath: project })), projectPath: path.join(top, "copy") }).kind).toBe("untrusted");
  });

  test("that is broken stops with its name and trusts nothing", async () => {
    write(widening);
    await ask(true);
    const file = path.join(host.agentboxHome, "trust.json");
    writeFileSync(file, readFileSync(file, "utf8").slice(0, -10));
    expect((await ask(true)).failure).toMatchObject({ message: expect.stringMatching(/trust\.json: .*fix: remove it/) });
  });

  test("of several at once keeps every agreement", async () => {
    await Promise.all(["/a", "/b", "/c"].map(async (projectPath) => await trustProject(host, { projectPath, files: [] })));
    expect(Object.keys(JSON.parse(readFileSync(path.join(host.agentboxHome, "trust.json"), "utf8")).projects).toSorted()).toEqual(["/a", "/b", "/c"]);
  });
});
