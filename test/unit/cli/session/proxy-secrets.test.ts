import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readUpstreamLogin, removeProxySecrets, writeProxySecrets } from "../../../../cli/session/proxy-secrets.ts";
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

test.each([
  ["http://ada:s%33cret@proxy.corp:3128", { user: "ada", password: "s3cret" }],
  ["http://proxy.corp:3128", null],
  [undefined, null],
])("who the box is to %s", (upstream, expected) => {
  expect(readUpstreamLogin(upstream === undefined ? {} : { network_proxy: { upstream_proxy: upstream } })).toEqual(expected);
});
