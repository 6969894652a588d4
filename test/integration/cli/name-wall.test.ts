import { X509Certificate } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { boxSpecSchema, type BoxSpec } from "../../../policy/box-spec.ts";
import { parseProxySecrets } from "../../../policy/proxy-secrets.ts";
import { makeAuthority } from "../../../proxy/interception/authority.ts";
import { FakeEngine } from "./fake-engine.ts";

// What the command line hands to a box whose names are judged, against an engine's client that only plays along. Tests
// run as root have two containers.
let engine: FakeEngine;

const run = ["run", "--dns", "192.0.2.53", "--", "true"];
const on = { AGENTBOX_FIREWALL: "1" };
const BEHIND = 'upstream_proxy = "http://ada:s3cret@192.0.2.8:3128"';
const SECRET = /s3cret|PRIVATE KEY/;

function configure(text: string): void {
  mkdirSync(path.join(engine.home, ".agentbox"), { recursive: true });
  writeFileSync(path.join(engine.home, ".agentbox/config.toml"), text);
}

/** The files of the session as they were when the agent was started, by their paths in it. */
function readSession(): Map<string, string> {
  const root = path.join(engine.home, "../fake/seen");
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(files.map((entry) => [path.relative(root, path.join(entry.parentPath, entry.name)), readFileSync(path.join(entry.parentPath, entry.name), "utf8")]));
}

function readSpec(container: "box" | "holder"): BoxSpec {
  return boxSpecSchema.parse(JSON.parse(readSession().get(`${container}/box.json`) ?? ""));
}

function readBundle(container: "box" | "holder"): X509Certificate[] {
  const blocks = (readSession().get(`${container}/ca-bundle.crt`) ?? "").match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => new X509Certificate(block));
}

beforeEach(() => {
  engine = new FakeEngine();
  engine.answer(
    "start",
    `case "$*" in *-net) for d in "$HOME"/.agentbox/sessions/*/holder-launch; do echo '{"event":"ready","text":"verified","ms":1}' >"$d/progress.jsonl"; done ;; *) cp -a "$HOME"/.agentbox/sessions/* "$FAKE/seen" ;; esac`,
  );
  engine.answer("wait", "sleep 30");
  engine.answer("run", 'case "$*" in *" /etc/ssl/certs/ca-certificates.crt") cat "$FAKE/system.crt" ;; esac; exit 0');
  writeFileSync(path.join(engine.home, "../fake/system.crt"), readFileSync("/etc/ssl/certs/ca-certificates.crt"));
});

afterEach(() => engine.remove());

describe("a box whose names are judged", () => {
  test("has nothing of its secrets anywhere but in one file that no agent's container sees, and none after its end", async () => {
    configure(`[network_proxy]\n${BEHIND}\n[network_proxy.mitm]\nenabled = true\n`);
    const outcome = await engine.run(run, on);
    expect(outcome).toMatchObject({ code: 0, stdout: "" });
    const files = readSession();
    expect([...files].flatMap(([name, text]) => (SECRET.test(text) ? [name] : []))).toEqual(["log/proxy-secrets.json"]);
    expect(parseProxySecrets(files.get("log/proxy-secrets.json") ?? "")).toMatchObject({ authority: { keyPem: expect.stringContaining("PRIVATE KEY") }, upstream: { user: "ada", password: "s3cret" } });
    expect(statSync(path.join(engine.home, "../fake/seen")).mode & 0o777).toBe(0o700);
    expect(engine.calls().join("\n")).not.toMatch(SECRET);
    expect(`${outcome.stdout}${outcome.stderr}`).not.toMatch(SECRET);
    const [agent = ""] = engine.calls().filter((call) => call.startsWith("create ") && call.includes("agentbox.role=agent"));
    expect(agent).toContain("target=/run/agentbox,readonly");
    expect(agent).not.toMatch(/sessions\/[^/]+\/log|agentbox-keeper/);
    expect(engine.sessions()).toEqual([]);
  });

  test("loses its secrets by the next start where its command line was killed", async () => {
    configure(`[network_proxy]\n${BEHIND}\n`);
    engine.answer("wait", "exit 1");
    const { child, outcome } = engine.start(run, on);
    engine.answer("start", "sleep 60");
    await engine.awaitCall("start");
    const [left = ""] = engine.sessions();
    const log = path.join(engine.home, ".agentbox/sessions", left, "log");
    expect(readdirSync(log)).toEqual(["proxy-secrets.json"]);
    child.kill("SIGKILL");
    await outcome;
    engine.answer("start", undefined);
    await engine.run(["run", "--", "true"]);
    expect(engine.sessions()).toEqual([]);
  });

  test("tells its programs of the proxy, and where TLS is opened of a bundle with the session's authority and all that was trusted before", async () => {
    configure("[network_proxy]\nproxy_url = 'http://127.0.0.1:9128'\nmitm = { enabled = true }\n");
    writeFileSync(path.join(engine.project, "dev.pem"), (await makeAuthority()).certPem);
    const outcome = await engine.run(["run", "--dns", "192.0.2.53", "-e", `PIP_CERT=${engine.project}/dev.pem`, "-e", "AWS_CA_BUNDLE=/nowhere.pem", "--", "true"], on);
    expect(outcome).toMatchObject({ code: 0 });
    expect(outcome.stderr).toMatch(/no certificate can be read from "\/nowhere\.pem"/);
    const { env, policy } = readSpec("box");
    expect(policy).toMatchObject({ enforcement: "name", nameWall: { intercept: true, httpPort: 9128 } });
    expect(env).toMatchObject({ HTTPS_PROXY: "http://127.0.0.1:9128", PIP_CERT: "/run/agentbox/ca-bundle.crt", SSL_CERT_FILE: "/run/agentbox/ca-bundle.crt", AWS_CA_BUNDLE: "/run/agentbox/ca-bundle.crt" });
    const system = (readFileSync(path.join(engine.home, "../fake/system.crt"), "utf8").match(/BEGIN CERTIFICATE/g) ?? []).length;
    for (const container of ["box", "holder"] as const) {
      const bundle = readBundle(container);
      expect(bundle.length).toBe(system + 2);
      // The session's, and the one of the project that the user named.
      expect(bundle.filter(({ subject }) => subject.includes("AgentBox interception authority"))).toHaveLength(2);
    }
  });

  test("reads no bundle that a variable of the project leads out of it to", async () => {
    configure("[network_proxy.mitm]\nenabled = true\n");
    const authority = readFileSync(path.join(engine.home, "../fake/system.crt"), "utf8");
    writeFileSync(path.join(engine.home, "outside.pem"), authority);
    writeFileSync(path.join(engine.project, ".env"), `SSL_CERT_FILE=${engine.home}/outside.pem\nPIP_CERT=${engine.project}/../home/outside.pem\n`);
    const outcome = await engine.run(run, on);
    expect(outcome).toMatchObject({ code: 0 });
    // Outside the project a path is one of the image.
    expect(engine.calls().filter((call) => call.startsWith("run ") && call.endsWith(` ${engine.home}/outside.pem`))).toHaveLength(1);
    expect(outcome.stderr.match(/no certificate can be read/g)).toHaveLength(2);
  });

  test("is told where the site's proxy is, which its agent's container needs not know", async () => {
    configure(`[network_proxy]\n${BEHIND}\n`);
    expect(await engine.run(run, on)).toMatchObject({ code: 0 });
    expect(readSpec("holder")).toMatchObject({ siteProxy: ["192.0.2.8"], policy: { nameWall: { upstream: { host: "192.0.2.8", port: 3128, tls: false } } } });
    expect(readSpec("box").siteProxy).toEqual([]);
  });
});

describe("a box whose addresses decide", () => {
  test.each([
    ["by the configuration", '[network]\nenforcement = "address"\n', []],
    ["by what was typed", "[network]\n", ["--enforcement", "address"]],
  ])("%s has no proxy to tell of and no secrets", async (_case, text, options) => {
    configure(text);
    expect(await engine.run(["run", ...options, "--dns", "192.0.2.53", "--", "true"])).toMatchObject({ code: 0 });
    const spec = readSpec("box");
    expect(spec.policy.enforcement).toBe("address");
    expect(Object.keys(spec.env).filter((name) => /proxy/i.test(name))).toEqual([]);
    expect([...readSession().keys()].filter((name) => name.includes("secrets"))).toEqual([]);
  });

  test.each([
    ["a site's proxy", `[network]\nenforcement = "address"\n[network_proxy]\n${BEHIND}\n`, [], 78, /upstream_proxy needs the name wall/],
    ["a list of what is denied", '[network.policy]\nmode = "deny-list"\n', ["--enforcement", "address"], 64, /cannot serve policy\.mode = "deny-list"/],
  ])("is not made for %s", async (_case, text, options, code, said) => {
    configure(text);
    const outcome = await engine.run(["run", ...options, "--dns", "192.0.2.53", "--", "true"]);
    expect(outcome.code).toBe(code);
    expect(outcome.stderr).toMatch(said);
    expect(outcome.stderr).not.toMatch(SECRET);
    expect(engine.calls().filter((call) => call.startsWith("create"))).toEqual([]);
  });
});

test.each([
  ["name", /by name: AGENTBOX_FIREWALL=1[^]*-A AGENTBOX-OUT -p tcp -m tcp --dport 443 -j AGENTBOX-WEB[^]*NAT, for iptables-restore[^]*-I OUTPUT 1 -j AGENTBOX-REDIRECT[^]*NAT, for ip6tables-restore/],
  ["address", /by address: AGENTBOX_FIREWALL=1(?![^]*(AGENTBOX-WEB|REDIRECT|HTTP_PROXY))/],
])("a dry run with --enforcement %s prints what the kernel would be told of it", async (enforcement, said) => {
  const outcome = await engine.run(["run", "--dry-run", "--enforcement", enforcement, "--dns", "192.0.2.53", "--", "true"], on);
  expect(outcome).toMatchObject({ code: 0, stderr: "" });
  expect(outcome.stdout).toMatch(said);
});
