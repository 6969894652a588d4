import { describe, expect, test } from "vitest";
import { parseConfig } from "../../../policy/config-file.ts";
import { buildNameWall } from "../../../policy/name-wall.ts";
import { DEFAULT_NAME_WALL } from "../../../policy/policy-document.ts";

function wallOf(text: string) {
  return buildNameWall(parseConfig({ file: "c.toml", text }));
}

describe("what a configuration makes of the name wall of a box", () => {
  test("nothing configured is the default", () => {
    expect([buildNameWall(undefined), wallOf("")]).toEqual([DEFAULT_NAME_WALL, DEFAULT_NAME_WALL]);
  });

  test("every setting arrives, and the site's proxy without its password", () => {
    const text = `[network]
ech = "refuse"
[network_proxy]
mode = "limited"
proxy_url = "http://127.0.0.1:4128"
enable_socks5 = false
upstream_proxy = "http://me:hunter2@proxy.corp.example:80"
[network_proxy.mitm]
enabled = true
inspect = true
max_body_bytes = 10
passthrough = ["pinned.example.com"]
`;
    expect(wallOf(text)).toEqual({
      methods: "limited",
      intercept: true,
      inspect: true,
      maxBodyBytes: 10,
      passthrough: [{ text: "pinned.example.com", place: { file: "c.toml", line: 12, column: 16 } }],
      ech: "refuse",
      httpPort: 4128,
      socksPort: null,
      upstream: { host: "proxy.corp.example", port: 80, tls: false },
    });
  });

  test.each([
    ["a listener that is not on lo", "proxy_url = 'http://0.0.0.0:3128'", "c.toml:2:13: proxy_url names 0.0.0.0"],
    ["a port that the box needs itself", "proxy_url = 'http://127.0.0.1:443'", "proxy_url takes port 443"],
    ["a port to which the web is led", "socks_url = 'socks5h://127.0.0.1:64443'", "socks_url takes port 64443"],
    ["one port for both", "proxy_url = 'http://127.0.0.1:8081'", "proxy_url and socks_url name the same port 8081"],
  ])("refuses %s", (_row, line, said) => {
    expect(() => wallOf(`[network_proxy]\n${line}\n`)).toThrow(said);
  });
});
