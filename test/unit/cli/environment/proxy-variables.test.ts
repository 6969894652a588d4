import { expect, test } from "vitest";
import { planEnvironment } from "../../../../cli/environment/environment.ts";
import { addProxyVariables } from "../../../../cli/environment/proxy-variables.ts";
import { CA_VARIABLES } from "../../../../policy/proxy-environment.ts";

const nameWall = { httpPort: 3128, socksPort: 8081 };
const base = { nameWall, env: {}, caBundle: undefined, ownHosts: [] };
const HTTP = "http://127.0.0.1:3128";

test("programs are led to the box's proxy by both spellings, and to lo directly", () => {
  const { env, notices } = addProxyVariables(base);
  for (const name of ["HTTP_PROXY", "HTTPS_PROXY", "WS_PROXY", "WSS_PROXY"]) expect([env[name], env[name.toLowerCase()]]).toEqual([HTTP, HTTP]);
  expect([env["ALL_PROXY"], env["all_proxy"]]).toEqual(["socks5h://127.0.0.1:8081", "socks5h://127.0.0.1:8081"]);
  expect([env["NO_PROXY"], env["no_proxy"]]).toEqual(["localhost,127.0.0.1,::1", "localhost,127.0.0.1,::1"]);
  expect(env["NODE_USE_ENV_PROXY"]).toBe("1");
  expect(env["JAVA_TOOL_OPTIONS"]).toContain("-Dhttps.proxyPort=3128");
  expect(env).not.toHaveProperty("SSL_CERT_FILE");
  expect(notices).toEqual([]);
});

test("ports are those of the configuration, and without SOCKS all goes by HTTP", () => {
  const { env } = addProxyVariables({ ...base, nameWall: { httpPort: 9000, socksPort: null } });
  expect(env).toMatchObject({ HTTPS_PROXY: "http://127.0.0.1:9000", ALL_PROXY: "http://127.0.0.1:9000" });
});

test("names of the box's own hosts file are gone to directly: the kernel judges their addresses", () => {
  const { env } = addProxyVariables({ ...base, ownHosts: ["db", "localhost"], env: { NO_PROXY: "db,.corp.example" } });
  expect(env).toMatchObject({ NO_PROXY: "localhost,127.0.0.1,::1,db,.corp.example", JAVA_TOOL_OPTIONS: expect.stringMatching(/nonProxyHosts=localhost\|127\.0\.0\.1\|\[::1\]\|db\|\.corp\.example$/) });
});

type Given = Record<string, string>;
test.each<{ name: string; env: Given; expected: Given; told?: RegExp }>([
  { name: "a proxy of the user's gives way, with a notice and without its password", env: { HTTPS_PROXY: "http://ada:s3cret@proxy.corp:3128" }, expected: { HTTPS_PROXY: HTTP, https_proxy: HTTP }, told: /^HTTPS_PROXY of yours: the box's own proxy takes its place(?!.*s3cret)/ },
  { name: "several give way with one notice", env: { http_proxy: "http://a:1", ALL_PROXY: "socks5://b:2" }, expected: { HTTP_PROXY: HTTP, all_proxy: "socks5h://127.0.0.1:8081" }, told: /^HTTP_PROXY, ALL_PROXY of yours: .* takes their place/ },
  { name: "a proxy of the box's own stays, in both spellings", env: { HTTP_PROXY: "http://localhost:8118" }, expected: { HTTP_PROXY: "http://localhost:8118", http_proxy: "http://localhost:8118", HTTPS_PROXY: HTTP } },
  { name: "an empty value keeps programs from being told", env: { ALL_PROXY: "" }, expected: { ALL_PROXY: "", all_proxy: "", HTTP_PROXY: HTTP } },
  { name: "two spellings that differ stay where both are kept", env: { HTTP_PROXY: "http://127.0.0.1:1", http_proxy: "" }, expected: { HTTP_PROXY: "http://127.0.0.1:1", http_proxy: "" } },
  { name: "exceptions join ours, once each", env: { NO_PROXY: ".corp.example, localhost,.corp.example," }, expected: { NO_PROXY: "localhost,127.0.0.1,::1,.corp.example", no_proxy: "localhost,127.0.0.1,::1,.corp.example" } },
  { name: "the lower spelling of exceptions counts", env: { NO_PROXY: "a", no_proxy: "b" }, expected: { NO_PROXY: "localhost,127.0.0.1,::1,b" } },
  { name: "Node is told what the user says", env: { NODE_USE_ENV_PROXY: "0" }, expected: { NODE_USE_ENV_PROXY: "0" } },
  { name: "options of the JVM stay in front of ours", env: { JAVA_TOOL_OPTIONS: "-Xmx1g" }, expected: { JAVA_TOOL_OPTIONS: "-Xmx1g -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 -Dhttp.nonProxyHosts=localhost|127.0.0.1|[::1]" } },
  { name: "everything else stays as it is", env: { FTP_PROXY: "http://x:1", A: "b" }, expected: { FTP_PROXY: "http://x:1", A: "b" } },
])("$name", ({ env: given, expected, told }) => {
  const { env, notices } = addProxyVariables({ ...base, env: given });
  expect(env).toMatchObject(expected);
  expect(notices.join("\n")).toMatch(told ?? /^$/);
});

const facts = { dotEnv: null, identity: { name: null, email: null }, terminal: {}, options: [{ name: "SSL_CERT_FILE", value: "/w/p/dev.pem" }, { name: "PIP_CERT", value: "/w/p/dev.pem" }, { name: "CURL_CA_BUNDLE", value: "" }] };
const plan = { facts, profile: {}, boxUid: 1000, siteCa: true, sshKey: false, roots: [], gitConfig: [] };

test("where TLS is opened all tools are told of one bundle, which the user's own and the site's join", () => {
  const { env, bundles } = planEnvironment({ ...plan, web: { ...base, caBundle: "/run/agentbox/ca-bundle.crt" } });
  for (const name of CA_VARIABLES) expect(env[name]).toBe("/run/agentbox/ca-bundle.crt");
  // The image's bundle, which holds the site's authority, is the ground that ours is made on.
  expect(bundles).toEqual(["/w/p/dev.pem"]);
});

test("where TLS stays closed the user's bundles stay as they are", () => {
  const { env, bundles } = planEnvironment({ ...plan, web: base });
  expect(env).toMatchObject({ SSL_CERT_FILE: "/w/p/dev.pem", HTTP_PROXY: HTTP });
  expect(bundles).toEqual([]);
});

test("without the name wall nobody is told of a proxy", () => {
  const { env } = planEnvironment({ ...plan, web: undefined });
  expect(Object.keys(env).filter((name) => /proxy|JAVA/i.test(name))).toEqual([]);
});
