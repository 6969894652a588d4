import { expect, test } from "vitest";
import { requestBox } from "../../../../cli/commands/start.ts";
import { parseCommandLine } from "../../../../cli/args.ts";
import { buildBoxSpec } from "../../../../cli/session/box-spec.ts";
import type { TypedRequest } from "../../../../cli/session/prepare.ts";
import type { AgentWord } from "../../../../cli/args-values.ts";
import { emptyDocument } from "../../../../policy/policy-document.ts";
import { boxSpecSchema } from "../../../../policy/box-spec.ts";

function request(argv: readonly string[], preferred?: AgentWord): TypedRequest {
  const command = parseCommandLine(argv, { agents: ["claude", "codex"], checkPath: () => undefined, firewall: "1", log: undefined });
  if (command.verb !== "start" && command.verb !== "login" && command.verb !== "shell" && command.verb !== "run") throw new Error(`${command.verb} starts no box`);
  return requestBox(command, preferred);
}

test.each([
  { name: "an agent works without asking, since the box is the sandbox", argv: ["claude", "--", "fix it"], expected: ["claude", "--dangerously-skip-permissions", "fix it"] },
  { name: "arguments follow unchanged", argv: ["--", "-p", "$(x) 'y'\n"], expected: ["claude", "--dangerously-skip-permissions", "-p", "$(x) 'y'\n"] },
  { name: "a shell is a login shell", argv: ["shell"], expected: ["/bin/bash", "-l"] },
  { name: "a command is run as it is, not by a shell", argv: ["run", "--", "echo", "a;b"], expected: ["echo", "a;b"] },
  { name: "signing in does not start a session", argv: ["codex", "login"], expected: ["codex", "login"] },
])("$name", ({ argv, expected }) => {
  expect(request(argv).renderCommand(true)).toEqual(expected);
});

test("a shell needs no agent in the image, an agent needs itself", () => {
  expect(request(["shell"]).agent).toBeUndefined();
  expect(request(["codex@1.2.3"]).agent).toEqual({ name: "codex", version: "1.2.3" });
  expect(request([]).agent).toEqual({ name: "claude", version: undefined });
});

test.each([
  { name: "starts when none is named", argv: [], expected: "codex" },
  { name: "gives way to one that is named", argv: ["claude"], expected: "claude" },
  { name: "has nothing to do with a shell", argv: ["shell"], expected: "shell" },
])("the configured agent $name", ({ argv, expected }) => {
  expect(request(argv, { name: "codex", version: undefined }).profile.name).toBe(expected);
});

test("the sign-in callback of codex is on the box's loopback", () => {
  expect(request(["codex", "login"]).callback).toEqual({ port: 1455, onLoopback: true });
});

test("the specification is one that the box accepts, and carries the environment as data", () => {
  const { profile } = request(["codex"]);
  const spec = buildBoxSpec({
    session: "1",
    profile,
    document: emptyDocument({ name: profile.name, hosts: [], critical: profile.critical }),
    network: { firewall: true, mode: "allowlist" },
    user: { uid: 501, gid: 20 },
    admin: false,
    command: ["codex"],
    project: "/p q",
    env: { NODE_OPTIONS: "--require=/x" },
    upstreams: ["10.0.0.1"],
    siteProxy: ["10.0.0.8"],
    gateways: ["172.17.0.1"],
    ports: [{ address: "127.0.0.1", host: 8080, container: 80, protocol: "udp" }],
    mounts: [{ target: "/p q", device: "65024", inode: "18446744073709551615" }],
  });
  expect(boxSpecSchema.parse(spec)).toMatchObject({
    policy: { agent: { name: "codex", critical: profile.critical } },
    user: { uid: 501, gid: 20, home: "/home/agent" },
    published: [{ port: 80, protocol: "udp" }],
    env: { NODE_OPTIONS: "--require=/x" },
    mounts: [{ target: "/p q", device: "65024", inode: "18446744073709551615" }],
  });
});
