import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { CA_VARIABLES, describeProxyEnvironment, DIRECT_LOOPBACK, renderExports } from "../../../policy/proxy-environment.ts";

const input = { httpUrl: "http://127.0.0.1:3128", socksUrl: "socks5h://127.0.0.1:8081", direct: [], caBundle: undefined };

test("every variable of a proxy is there in both cases", () => {
  const variables = describeProxyEnvironment(input);
  for (const name of ["HTTP_PROXY", "HTTPS_PROXY", "WS_PROXY", "WSS_PROXY"]) {
    expect([variables.get(name), variables.get(name.toLowerCase())]).toEqual([input.httpUrl, input.httpUrl]);
  }
  expect([variables.get("ALL_PROXY"), variables.get("all_proxy")]).toEqual([input.socksUrl, input.socksUrl]);
  expect([variables.get("NO_PROXY"), variables.get("no_proxy")]).toEqual(["", ""]);
  expect(variables.get("NODE_USE_ENV_PROXY")).toBe("1");
  expect([...variables.keys()].filter((name) => CA_VARIABLES.includes(name))).toEqual([]);
});

test("without SOCKS everything is told of the HTTP proxy", () => {
  expect(describeProxyEnvironment({ ...input, socksUrl: undefined }).get("ALL_PROXY")).toBe(input.httpUrl);
});

test("hosts that are reached directly are named to all, a JVM among them", () => {
  const variables = describeProxyEnvironment({ ...input, direct: DIRECT_LOOPBACK });
  expect(variables.get("no_proxy")).toBe("localhost,127.0.0.1,::1");
  expect(variables.get("JAVA_TOOL_OPTIONS")).toContain("-Dhttp.nonProxyHosts=localhost|127.0.0.1|[::1]");
});

test.each([
  { name: "a port of its own", httpUrl: "http://127.0.0.1:3128", said: "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 -Dhttp.nonProxyHosts=" },
  { name: "port 80, which a URL leaves out", httpUrl: "http://127.0.0.1:80", said: "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=80 " },
  { name: "IPv6", httpUrl: "http://[::1]:3128", said: "-Dhttp.proxyHost=::1 " },
])("a JVM is told $name, and what the user told it stays", ({ httpUrl, said }) => {
  const java = describeProxyEnvironment({ ...input, httpUrl, javaOptions: "-Xmx1g" }).get("JAVA_TOOL_OPTIONS") ?? "";
  expect(java).toMatch(/^-Xmx1g -Dhttp/);
  expect(java).toContain(said);
});

test("a bundle is named to every tool that has a variable for it", () => {
  const variables = describeProxyEnvironment({ ...input, caBundle: "/b.pem" });
  for (const name of CA_VARIABLES) expect(variables.get(name)).toBe("/b.pem");
});

test("a shell reads the lines as they are meant, whatever is in a value", () => {
  const hostile = "a'b $(id) `id` \"x\" \\ \n#";
  const script = `${renderExports(new Map([["X", hostile]]))}printf %s "$X"`;
  expect(execFileSync("/bin/sh", ["-c", script], { encoding: "utf8" })).toBe(hostile);
});
