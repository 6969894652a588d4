import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readUpstreamLogin, removeProxySecrets, warnReadableLogin, writeProxySecrets } from "../../../../cli/session/proxy-secrets.ts";
import type { Config } from "../../../../policy/config-schema.ts";
import { parseProxySecrets, PROXY_SECRETS_FILE, type ProxySecrets } from "../../../../policy/proxy-secrets.ts";

const SECRETS: ProxySecrets = { version: 1, authority: { certPem: "C", keyPem: "K" }, upstream: { user: "ada", password: "s3cret" } };
let log: string;
beforeEach(() => {
  log = mkdtempSync(join(tmpdir(), "agentbox-secrets-"));
});
afterEach(() => rmSync(log, { recursive: true, force: true }));

test("the proxy reads what was written, whoever it is, and nobody else may write it", async () => {
  await writeProxySecrets({ log }, SECRETS);
  expect(parseProxySecrets(readFileSync(join(log, PROXY_SECRETS_FILE), "utf8"))).toEqual(SECRETS);
  expect(statSync(join(log, PROXY_SECRETS_FILE)).mode & 0o777).toBe(0o644);
});

test("a link that stands in its place is replaced, and nothing is written through it", async () => {
  const elsewhere = join(log, "elsewhere");
  writeFileSync(elsewhere, "untouched");
  symlinkSync(elsewhere, join(log, PROXY_SECRETS_FILE));
  await writeProxySecrets({ log }, SECRETS);
  expect(readFileSync(elsewhere, "utf8")).toBe("untouched");
});

test("they go with the session, drafts and what took their place included, and nothing else does", async () => {
  await writeProxySecrets({ log }, SECRETS);
  writeFileSync(join(log, `${PROXY_SECRETS_FILE}.0123456789abcdef01234567.new`), "half");
  writeFileSync(join(log, "decisions.jsonl"), "");
  await removeProxySecrets(log);
  expect(readdirSync(log)).toEqual(["decisions.jsonl"]);
  mkdirSync(join(log, PROXY_SECRETS_FILE, "inner"), { recursive: true });
  await removeProxySecrets(log);
  expect(readdirSync(log)).toEqual(["decisions.jsonl"]);
  await removeProxySecrets(join(log, "missing"));
});

test.each(["", "{", "null", '{"version":2,"authority":null,"upstream":null}', '{"version":1,"authority":null,"upstream":null,"more":1}'])("%j is not what the command line writes", (text) => {
  expect(parseProxySecrets(text)).toBeUndefined();
});

function behind(upstream: string | undefined): Config {
  return upstream === undefined ? {} : { network_proxy: { upstream_proxy: upstream } };
}

const OWN = "http://ada:s%33cret@proxy.corp:3128";
const LOGIN = { user: "ada", password: "s3cret" };
test.each<[string, string | undefined, string | undefined, typeof LOGIN | null]>([
  ["the one that counts says it", OWN, undefined, LOGIN],
  ["it asks for nobody", "http://proxy.corp:3128", undefined, null],
  ["there is none", undefined, OWN, null],
  ["the user's own file knows it", "http://PROXY.corp:3128", OWN, LOGIN],
  ["the user's own file knows another port", "http://proxy.corp:8080", OWN, null],
  ["the user's own file knows it by TLS", "http://proxy.corp:3128", OWN.replace("http:", "https:"), null],
  ["both say it, and the one that counts wins", "http://bob:x@proxy.corp:3128", OWN, { user: "bob", password: "x" }],
])("who the box is to the site's proxy, where %s", (_case, counts, own, expected) => {
  expect(readUpstreamLogin({ config: behind(counts), userConfig: behind(own) })).toEqual(expected);
});

test("a password that the agent can read is told of, without it", () => {
  expect(warnReadableLogin({ config: behind(OWN), ofProject: true })).toEqual([expect.stringMatching(/^the agent can read the password of upstream_proxy(?!.*s3cret)/)]);
  expect(warnReadableLogin({ config: behind(OWN), ofProject: false })).toEqual([]);
  expect(warnReadableLogin({ config: behind("http://proxy.corp:3128"), ofProject: true })).toEqual([]);
});
