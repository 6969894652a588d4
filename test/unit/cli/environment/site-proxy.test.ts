import { expect, test } from "vitest";
import { planSiteProxy } from "../../../../cli/environment/site-proxy.ts";

const none = { hostEnv: {}, enforcement: "address" as const, boxEnv: {} };

test("the host's proxy serves the build, in both spellings, and is named without its password", () => {
  const hostEnv = { HTTPS_PROXY: "http://ada:s3cret@proxy.corp.example:3128", no_proxy: "corp.example" };
  const { buildArgs, notices, onHostLoopback } = planSiteProxy({ ...none, hostEnv });
  expect(buildArgs).toEqual({ HTTPS_PROXY: hostEnv.HTTPS_PROXY, https_proxy: hostEnv.HTTPS_PROXY, NO_PROXY: "corp.example", no_proxy: "corp.example" });
  expect(notices).toEqual(["the proxy proxy.corp.example:3128 serves the image build only; the box goes out directly"]);
  expect(onHostLoopback).toBe(false);
});

test("without a proxy nothing is said, even when exceptions are listed", () => {
  expect(planSiteProxy({ ...none, hostEnv: { NO_PROXY: "x", HTTP_PROXY: "" } })).toEqual({ buildArgs: {}, notices: [], onHostLoopback: false });
});

test("the lower-case name wins", () => {
  expect(planSiteProxy({ ...none, hostEnv: { HTTP_PROXY: "http://a:1", http_proxy: "http://b:2" } }).buildArgs["HTTP_PROXY"]).toBe("http://b:2");
});

test.each(["http://localhost:3128", "127.0.0.1:8080", "http://[::1]:3128"])("a proxy on the host's loopback (%s) needs the host's network for the build", (proxy) => {
  expect(planSiteProxy({ ...none, hostEnv: { HTTPS_PROXY: proxy } }).onHostLoopback).toBe(true);
});

test.each(["HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"])("%s for the box stops the start where addresses decide", (name) => {
  const query = { ...none, boxEnv: { [name]: "http://ada:s3cret@proxy.corp.example:3128" } };
  expect(() => planSiteProxy(query)).toThrow(/a box that may talk to an open proxy has no firewall/);
  expect(() => planSiteProxy(query)).not.toThrow(/s3cret/);
  expect(() => planSiteProxy({ ...query, enforcement: undefined })).not.toThrow();
  // There the box's own proxy takes its place.
  expect(() => planSiteProxy({ ...query, enforcement: "name" })).not.toThrow();
});

test("a proxy on the box's own loopback and an unset one pass", () => {
  expect(() => planSiteProxy({ ...none, boxEnv: { HTTP_PROXY: "http://127.0.0.1:8118", HTTPS_PROXY: "" } })).not.toThrow();
});

test("every proxy that no build can use is named, without its value", () => {
  const query = { ...none, hostEnv: { HTTP_PROXY: "socks5://s3cret@h:1", HTTPS_PROXY: "http://" } };
  expect(() => planSiteProxy(query)).toThrow(/HTTP_PROXY[^]*HTTPS_PROXY/);
  expect(() => planSiteProxy(query)).not.toThrow(/s3cret/);
});
