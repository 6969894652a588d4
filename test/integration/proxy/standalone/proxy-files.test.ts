import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findFreePort } from "./free-port.ts";
import { curl, ProxyHome } from "./proxy-process.ts";

let origin: Server;
let port = 0;
let place = "";

beforeAll(async () => {
  port = await findFreePort();
  place = `127.0.0.1:${port}`;
  origin = createServer((request, response) => response.end(`origin ${request.method} ${request.url}\n`)).listen(port, "127.0.0.1");
  await once(origin, "listening");
});

afterAll(() => {
  origin.closeAllConnections();
  origin.close();
});

const OTHER = "127.0.0.3";

function http({ ports }: ProxyHome): string[] {
  return ["-x", `http://127.0.0.1:${ports.http}`];
}

describe("the file of a project", () => {
  test("has to be agreed to before the proxy starts by it, and again when it widens; the user's own denials hold", async () => {
    using home = await ProxyHome.make();
    const file = join(home.project, ".agentbox/config.toml");
    mkdirSync(join(home.project, ".agentbox"));
    mkdirSync(join(home.home, ".agentbox"));
    writeFileSync(join(home.home, ".agentbox/config.toml"), `[network_proxy.policy]\ndenied_domains = ["${OTHER}"]\n`);
    home.write({ allowed: [place, `${OTHER}:${port}`] }, file);
    const inProject = { cwd: home.project };
    expect(await home.run(["proxy"], inProject)).toMatchObject({ code: 78, stdout: "", stderr: expect.stringMatching(/you did not agree to this file yet.*agentbox policy trust/) });
    expect((await home.run(["policy", "trust"], inProject)).code).toBe(0);
    await using _proxy = await home.start([], inProject);
    expect(await curl(...http(home), `http://${place}/`)).toBe("200 origin GET /");
    expect(await curl(...http(home), `http://${OTHER}:${port}/`)).toMatch(/^403 .*"reason":"denied"/);
    home.write({ allowed: [place, `${OTHER}:${port}`, "widened.invalid"] }, file);
    const refused = await home.run(["proxy", "ctl", "reload"], inProject);
    expect(refused).toMatchObject({ code: 78, stderr: expect.stringMatching(/you did not agree to this file yet.*widened\.invalid/) });
    expect((await home.run(["proxy", "ctl", "health"], inProject)).stdout).toMatch(/^degraded: /);
    expect(await curl(...http(home), "http://widened.invalid:443/")).toMatch(/^403 .*"reason":"not_allowed"/);
    // A host that the owner allows through the proxy's own command is agreed to with that.
    home.write({ allowed: [place, `${OTHER}:${port}`] }, file);
    expect((await home.run(["proxy", "ctl", "allow", "mine.invalid"], inProject)).stdout).toBe("+ allow mine.invalid\n");
    expect(await curl(...http(home), "http://mine.invalid:443/")).toMatch(/^502 /);
  });
});

describe("a site's proxy", () => {
  test("is what everything leaves through, with the login of the user's own file where a project's names the proxy alone", async () => {
    using home = await ProxyHome.make();
    const heads: string[] = [];
    const sitePort = await findFreePort();
    const site = createTcpServer((socket) => socket.once("data", (bytes) => {
      heads.push(bytes.toString("latin1"));
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsite\n");
    })).listen(sitePort, "127.0.0.1");
    await once(site, "listening");
    try {
      mkdirSync(join(home.project, ".agentbox"));
      mkdirSync(join(home.home, ".agentbox"));
      writeFileSync(join(home.home, ".agentbox/config.toml"), `[network_proxy]\nupstream_proxy = "http://me:hunter2@127.0.0.1:${sitePort}"\n`);
      home.write({ allowed: ["http://outside.invalid"], more: `upstream_proxy = "http://127.0.0.1:${sitePort}"` }, join(home.project, ".agentbox/config.toml"));
      const inProject = { cwd: home.project };
      await home.run(["policy", "trust"], inProject);
      await using _proxy = await home.start([], inProject);
      expect(await curl(...http(home), "http://outside.invalid/x")).toBe("200 site");
      expect(await curl(...http(home), "http://foreign.invalid/x")).toMatch(/^403 /);
      expect(heads).toEqual([expect.stringMatching(/^GET http:\/\/outside\.invalid\/x HTTP\/1\.1\r\n/)]);
      expect(heads[0]).toContain(`Proxy-Authorization: Basic ${Buffer.from("me:hunter2").toString("base64")}\r\n`);
      const config = await home.run(["proxy", "ctl", "config", "--json"], inProject);
      expect(config.stdout).toContain(`"upstream_proxy": "http://127.0.0.1:${sitePort}"`);
      expect(config.stdout + JSON.stringify(home.readLog())).not.toContain("hunter2");
    } finally {
      site.close();
    }
  });
});
