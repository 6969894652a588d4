import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { renderHost } from "../../../policy/host-name.ts";
import { parseListener, parseUnixSocket, parseUpstream, renderHostPort } from "../../../policy/proxy-words.ts";

describe("the address of a listener", () => {
  test.each([
    ["http://127.0.0.1:3128", "127.0.0.1:3128"],
    ["socks5://127.0.0.1:8081", "127.0.0.1:8081"],
    ["127.0.0.1:80", "127.0.0.1:80"],
    ["http://localhost:3128/", "localhost:3128"],
    ["http://[::1]:3128", "[::1]:3128"],
    ["http://0.0.0.0:80", "0.0.0.0:80"],
  ])("%s", (text, canonical) => {
    const listener = parseListener(text);
    expect(listener.ok && renderHostPort(listener.value)).toBe(canonical);
  });

  test.each(["http://127.0.0.1", "127.0.0.1", "http://127.0.0.1:0", "http://127.0.0.1:65536", "http://example.com:3128", "http://u:p@127.0.0.1:3128", "http://127.0.0.1:3128/path", "ftp://127.0.0.1:21", ""])("refuses %s", (text) => {
    expect(parseListener(text).ok).toBe(false);
  });
});

describe("the site's proxy", () => {
  test("keeps the port that is the scheme's own", () => {
    expect(parseUpstream("http://proxy.corp.example:80")).toMatchObject({ ok: true, value: { port: 80, tls: false, user: "", password: "" } });
    expect(parseUpstream("https://proxy.corp.example:443")).toMatchObject({ ok: true, value: { port: 443, tls: true } });
  });

  test("reads user and password as a URL writes them", () => {
    expect(parseUpstream("http://me%40corp:p%3Ass@10.1.2.3:3128")).toMatchObject({ ok: true, value: { user: "me@corp", password: "p:ss", port: 3128 } });
  });

  test.each(["http://proxy.corp.example", "socks5://proxy.corp.example:1080", "http://me:hunter2@:3128", "http://me:hunter2@proxy:99999", "http://me:%zz@proxy.corp.example:3128", "http://me:hunter2@pro xy:3128"])("refuses %s and repeats no password", (text) => {
    const refused = parseUpstream(text);
    expect(refused.ok).toBe(false);
    expect(JSON.stringify(refused)).not.toContain("hunter2");
  });
});

describe("a socket to let through", () => {
  test.each([
    ["/run/user/1000/agent.sock", { kind: "path", path: "/run/user/1000/agent.sock" }],
    ["$SSH_AUTH_SOCK", { kind: "ssh-agent" }],
    ["ssh-agent", { kind: "ssh-agent" }],
  ])("%s", (text, socket) => {
    expect(parseUnixSocket(text)).toEqual({ ok: true, value: socket });
  });

  test.each(["run/agent.sock", "$HOME/agent.sock", "/", "/run/../etc/shadow", "/run/./x", "/run/x\n", "~/x.sock", `/${"x".repeat(200)}`, ""])("refuses %j", (text) => {
    expect(parseUnixSocket(text).ok).toBe(false);
  });
});

test("whatever is taken for a listener is one host and one port, and is read back as the same", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.webUrl(), fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 70_000 })).map(([host, port]) => `http://${host}:${port}`)), (text) => {
      const listener = parseListener(text);
      if (!listener.ok) return;
      const again = parseListener(renderHostPort(listener.value));
      expect(again.ok && [renderHost(again.value.host), again.value.port]).toEqual([renderHost(listener.value.host), listener.value.port]);
    }),
  );
});
