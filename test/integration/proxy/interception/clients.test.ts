import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { getCACertificates } from "node:tls";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describeProxyEnvironment } from "../../../../policy/proxy-environment.ts";
import { mergeTrust } from "../../../../proxy/interception/trust-bundle.ts";
import type { Rig } from "../web-rig.ts";
import { type Authorities, makeAuthorities, type Origin, startHttps, startInterception } from "./interception-rig.ts";

const run = promisify(execFile);
const has = (program: string): boolean => spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;

let authorities: Authorities;
let dir = "";
let origin: Origin<unknown>;
let rig: Rig;
let base = "";

/** The paths that were asked for. */
const seen: string[] = [];

/** What a client asks for first of all, by path. */
const PAGES: Readonly<Record<string, () => string>> = {
  "/-/ping": () => "{}",
  "/simple/tiny/": () => '<a href="/tiny-1.0.tar.gz">tiny-1.0.tar.gz</a>',
  "/config.json": () => JSON.stringify({ dl: `${base}/dl`, api: base }),
  "/api/v1/crates": () => JSON.stringify({ crates: [], meta: { total: 0 } }),
  "/bucket": () => '<?xml version="1.0"?><ListBucketResult><Name>bucket</Name><KeyCount>0</KeyCount></ListBucketResult>',
};

function answer({ url = "/" }: IncomingMessage, response: ServerResponse): void {
  const asked = url.split("?")[0] ?? "/";
  const file = path.join(dir, "repository.git", asked.replace("/repository.git", ""));
  const page = PAGES[asked];
  seen.push(asked);
  if (page !== undefined) response.writeHead(200, { "content-type": asked.startsWith("/simple/") ? "text/html" : "application/json" }).end(page());
  else if (asked.startsWith("/repository.git/") && existsSync(file) && statSync(file).isFile()) response.end(readFileSync(file));
  else response.writeHead(asked === "/" ? 200 : 404).end("hello");
}

beforeAll(async () => {
  authorities = await makeAuthorities();
  dir = mkdtempSync(path.join(tmpdir(), "agentbox-clients-"));
  origin = await startHttps(await authorities.issuer.contextFor("a.example"), (server) => void server.on("request", answer));
  base = `https://a.example:${origin.port}`;
  rig = await startInterception(authorities, { allow: [`a.example:${origin.port}`], hosts: { "a.example": ["127.0.0.1"] } });
  writeFileSync(path.join(dir, "ca.pem"), authorities.own.certPem);
  writeFileSync(path.join(dir, "bundle.pem"), mergeTrust({ own: authorities.own.certPem, user: [], system: getCACertificates("bundled").join("\n") }));
});
afterAll(async () => {
  await rig[Symbol.asyncDispose]();
  await origin[Symbol.asyncDispose]();
  rmSync(dir, { recursive: true, force: true });
});

/** The environment of children, with or without the bundle. */
const environment = (trusts: boolean): NodeJS.ProcessEnv => ({ PATH: process.env["PATH"], HOME: process.env["HOME"], ...Object.fromEntries(describeProxyEnvironment({ httpUrl: `http://127.0.0.1:${rig.port}`, socksUrl: undefined, direct: [], caBundle: trusts ? path.join(dir, "bundle.pem") : undefined })) });

const git = (...args: string[]): unknown => spawnSync("git", args, { cwd: dir });

const JAVA = `public class Main { public static void main(String[] a) throws Exception {
  try (var in = new java.net.URI(a[0]).toURL().openStream()) { System.out.println(new String(in.readAllBytes())); } } }`;

type Row = { program: string; argv: () => readonly string[]; says: RegExp; /** A path that has to be asked for. */ asks?: string; prepare?: () => void; env?: () => NodeJS.ProcessEnv };

const rows: readonly Row[] = [
  { program: "curl", argv: () => ["-sS", `${base}/`], says: /^hello$/ },
  // Debian's is made with GnuTLS, which reads no variable.
  { program: "wget", argv: () => ["-qO-", "--tries=1", `--ca-certificate=${path.join(dir, "bundle.pem")}`, `${base}/`], says: /^hello$/ },
  {
    program: "git",
    prepare: () => {
      git("init", "-q", "work");
      git("-C", "work", "-c", "user.name=a", "-c", "user.email=a@a.example", "commit", "-q", "--allow-empty", "-m", "first");
      git("clone", "-q", "--bare", "work", "repository.git");
      git("-C", "repository.git", "update-server-info");
    },
    argv: () => ["ls-remote", `${base}/repository.git`],
    says: /\tHEAD\n/,
  },
  { program: "python3", argv: () => ["-c", `import urllib.request; print(urllib.request.urlopen("${base}/").read().decode())`], says: /^hello\n$/ },
  { program: "pip", argv: () => ["index", "versions", "tiny", "--index-url", `${base}/simple/`, "--disable-pip-version-check", "--no-input", "--retries", "0"], says: /tiny \(1\.0\)/, env: () => ({ PIP_CONFIG_FILE: "/dev/null" }) },
  { program: "npm", argv: () => ["ping", "--registry", `${base}/`, "--userconfig", "/dev/null", "--fetch-retries", "0"], says: /^$/, asks: "/-/ping" },
  { program: "cargo", argv: () => ["search", "tiny", "--index", `sparse+${base}/`], says: /^$/, asks: "/api/v1/crates", env: () => ({ CARGO_HOME: path.join(dir, "cargo"), CARGO_NET_RETRY: "0", RUSTUP_HOME: process.env["RUSTUP_HOME"] ?? path.join(process.env["HOME"] ?? "", ".rustup") }) },
  { program: "aws", argv: () => ["s3api", "list-objects-v2", "--bucket", "bucket", "--endpoint-url", base, "--no-sign-request", "--region", "eu-west-1"], says: /RequestCharged|^$/, asks: "/bucket", env: () => ({ AWS_MAX_ATTEMPTS: "1" }) },
  {
    program: "java",
    // The JVM takes one certificate of a file: the authority's own, and not the bundle.
    prepare: () => {
      spawnSync("keytool", ["-importcert", "-noprompt", "-alias", "agentbox", "-file", path.join(dir, "ca.pem"), "-keystore", path.join(dir, "trust.p12"), "-storepass", "changeit"]);
      writeFileSync(path.join(dir, "Main.java"), JAVA);
    },
    argv: () => [`-Djavax.net.ssl.trustStore=${path.join(dir, "trust.p12")}`, "-Djavax.net.ssl.trustStorePassword=changeit", path.join(dir, "Main.java"), `${base}/`],
    says: /^hello\n$/,
  },
];

describe("with the environment that children get", () => {
  // No row where there is no such program: what every machine of the tests has, scripts/provision.ts tells.
  for (const { program, argv, says, asks = "", prepare, env } of rows.filter((row) => has(row.program))) {
    test(`${program} goes through opened TLS`, async () => {
      prepare?.();
      seen.length = 0;
      const { stdout } = await run(program, [...argv()], { env: { ...environment(true), ...env?.() } });
      expect(stdout).toMatch(says);
      expect(seen.join(" ")).toContain(asks);
    });
  }

  test("requests goes through opened TLS", async () => {
    const { stdout } = await run("python3", ["-c", `import requests; print(requests.get("${base}/").text)`], { env: environment(true) });
    expect(stdout).toBe("hello\n");
  });

  // Those that were let through above show that it is the authority alone that these miss.
  test.each([
    { program: "curl", argv: () => ["-sS", `${base}/`], says: /certificate/i },
    { program: "wget", argv: () => ["-O-", "--tries=1", `${base}/`], says: /certificate/i },
    { program: "git", argv: () => ["ls-remote", `${base}/repository.git`], says: /certificate/i },
    { program: "python3", argv: () => ["-c", `import urllib.request; urllib.request.urlopen("${base}/")`], says: /CERTIFICATE_VERIFY_FAILED/ },
  ].filter(({ program }) => has(program)))("$program without the bundle refuses the certificate by itself", async ({ program, argv, says }) => {
    await expect(run(program, [...argv()], { env: environment(false) })).rejects.toThrow(says);
  });
});
