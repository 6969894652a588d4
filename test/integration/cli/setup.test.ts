import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeEngine } from "./fake-engine.ts";

let engine: FakeEngine;
let file: string;

beforeEach(() => {
  engine = new FakeEngine();
  file = path.join(engine.project, ".agentbox/config.toml");
});

afterEach(() => engine.remove());

test("writes what the options say, trusted at once, and names the next command", async () => {
  const outcome = await engine.run(["setup", "--agent", "codex", "--preset", "rust", "--preset", "go", "--allow", "api.example.com", "--topology", "sidecar"]);
  expect(outcome).toMatchObject({ code: 0, stdout: expect.stringMatching(/written\.\nStart with: agentbox\n/) });
  expect(readFileSync(file, "utf8")).toMatch(/presets = \["rust", "go"\][^]*"api\.example\.com"[^]*topology = "sidecar"[^]*agent = "codex"/);
  expect(await engine.run(["policy", "check"])).toMatchObject({ code: 0 });
});

test("writes the smallest file without options", async () => {
  expect((await engine.run(["setup"])).code).toBe(0);
  expect((await engine.run(["policy", "show"])).stdout).toMatch(/^network allowlist/);
});

test("writes the user's own file when asked to", async () => {
  expect((await engine.run(["setup", "--user", "--preset", "go"])).code).toBe(0);
  expect(existsSync(file)).toBe(false);
  expect((await engine.run(["policy", "show"])).stdout).toMatch(/presets: go/);
});

test("leaves a file that is there, unless it is forced", async () => {
  mkdirSync(path.dirname(file));
  writeFileSync(file, "[network]\n");
  expect(await engine.run(["setup", "--preset", "go"])).toMatchObject({ code: 64, stderr: expect.stringMatching(/is there already.*--force/) });
  expect(readFileSync(file, "utf8")).toBe("[network]\n");
  expect((await engine.run(["setup", "--preset", "go", "--force"])).stdout).toMatch(/replaced/);
  expect(readFileSync(file, "utf8")).toMatch(/presets = \["go"\]/);
});

test.each([
  { name: "the file", make: () => (mkdirSync(path.dirname(file)), symlinkSync(path.join(engine.home, "victim"), file)) },
  { name: "its directory", make: () => symlinkSync(engine.home, path.dirname(file)) },
])("never writes through a link in place of $name", async ({ make }) => {
  writeFileSync(path.join(engine.home, "victim"), "kept");
  make();
  expect(await engine.run(["setup", "--force"])).toMatchObject({ code: 78, stderr: expect.stringMatching(/is a link/) });
  expect(readFileSync(path.join(engine.home, "victim"), "utf8")).toBe("kept");
  expect(existsSync(path.join(engine.home, "config.toml"))).toBe(false);
});

test("takes the user's own directory where the user put it", async () => {
  mkdirSync(path.join(engine.home, "elsewhere"));
  symlinkSync("elsewhere", path.join(engine.home, ".agentbox"));
  expect(await engine.run(["setup", "--user", "--preset", "go"])).toMatchObject({ code: 0 });
  expect(readFileSync(path.join(engine.home, "elsewhere/config.toml"), "utf8")).toMatch(/presets = \["go"\]/);
});

test.each([
  { name: "an unknown preset, with the nearest", argv: ["--preset", "rusty"], said: /did you mean rust\?/, code: 64 },
  { name: "a host that is none", argv: ["--allow", "*foo.com"], said: /\*foo\.com/, code: 64 },
  { name: "a name of the local network, with the form that opens it", argv: ["--allow", "db:5432"], said: /\{ host = "db", ports = \[5432\], private = true \}/, code: 64 },
  { name: "everything, with the option for that", argv: ["--allow", "*"], said: /--full-network/, code: 64 },
  { name: "a whole public suffix", argv: ["--allow", "*.co.uk"], said: /every domain registered below co\.uk/, code: 78 },
])("writes nothing for $name", async ({ argv, said, code }) => {
  expect(await engine.run(["setup", ...argv])).toMatchObject({ code, stderr: expect.stringMatching(said) });
  expect(existsSync(file)).toBe(false);
});
