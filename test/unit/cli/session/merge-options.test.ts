import { expect, test } from "vitest";
import { parseCommandLine } from "../../../../cli/args.ts";
import type { Options } from "../../../../cli/args.ts";
import { leaveTyped, mergeOptions, readConfiguredBox } from "../../../../cli/session/merge-options.ts";
import type { Config } from "../../../../policy/config-schema.ts";

function type(argv: readonly string[]): Options {
  const command = parseCommandLine(["run", ...argv, "--", "true"], { agents: ["claude", "codex"], checkPath: () => undefined, firewall: undefined, log: undefined });
  if (command.verb !== "run") throw new Error(`${command.verb} is not run`);
  return command.options;
}

function merge(argv: readonly string[], config: Config): Options {
  return mergeOptions({ options: type(argv), config, projectPath: "/p", home: "/home/me" });
}

test("of ports both count, and where they clash the typed one does", () => {
  const merged = merge(["-p", "8080:1"], { box: { ports: ["8080:2", "9090", "127.0.0.2:8080:3"] } });
  expect(merged.ports.map(({ address, host, container }) => `${address}:${host}:${container}`)).toEqual(["127.0.0.1:8080:1", "127.0.0.1:9090:9090", "127.0.0.2:8080:3"]);
});

test("of directories both count, the configured ones from the project or the home directory", () => {
  expect(merge(["--add-dir", "x"], { box: { add_dirs: ["../lib", "~/data", "/opt"] } }).addDirs).toEqual(["x", "/lib", "/home/me/data", "/opt"]);
});

test("a variable that is typed comes last, and so wins", () => {
  expect(merge(["-e", "A=typed"], { box: { env: { A: "file", B: "b=c" } } }).env).toEqual(["A=file", "B=b=c", "A=typed"]);
});

test.each([
  { name: "typed resolvers take the place of configured ones", argv: ["--dns", "9.9.9.9"], expected: ["9.9.9.9"] },
  { name: "configured resolvers count where none is typed", argv: [], expected: ["10.0.0.1"] },
])("$name", ({ argv, expected }) => {
  expect(merge(argv, { network: { dns: ["10.0.0.1"] } }).dns).toEqual(expected);
});

test("a configured image is read by its words, its certificates from the file's directory", () => {
  const configured = readConfiguredBox({ config: { box: { agent: "codex@1.2.3", memory: "2g" }, build: { ca_file: "ca.pem", agents: ["claude", "codex"] } }, home: "/home/me", directory: "/p/.agentbox" });
  expect(configured).toMatchObject({
    agent: { name: "codex", version: "1.2.3" },
    limits: { memory: "2g", cpus: undefined },
    image: { caFile: "/p/.agentbox/ca.pem", packages: undefined, agents: [{ name: "claude" }, { name: "codex" }] },
  });
});

test("what was typed about the image stays, and the file says the rest", () => {
  const typed = { agents: undefined, packages: [], base: undefined, caFile: null };
  const configured = { agents: [{ name: "codex", version: undefined }], packages: ["jq"], base: "local", caFile: "/ca.pem" };
  expect(leaveTyped(typed, configured)).toEqual({ agents: configured.agents, packages: undefined, base: "local", caFile: undefined });
});
