import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findFreePort } from "./free-port.ts";
import { curl, ProxyHome } from "./proxy-process.ts";
import { openTunnel } from "./tunnel-client.ts";

let origin: Server;
let port = 0;
let place = "";

beforeAll(async () => {
  port = await findFreePort();
  place = `127.0.0.1:${port}`;
  origin = createServer((request, response) => {
    request.resume().on("end", () => response.end(`origin ${request.method} ${request.url}\n`));
  }).listen(port, "127.0.0.1");
  await once(origin, "listening");
});

afterAll(() => {
  origin.closeAllConnections();
  origin.close();
});

const http = ({ ports }: ProxyHome): string[] => ["-x", `http://127.0.0.1:${ports.http}`];

describe("agentbox proxy", () => {
  test("leads real clients through by the lines that it prints, in every protocol", async () => {
    using home = await ProxyHome.make();
    home.write({ allowed: [place] });
    await using proxy = await home.start();
    const script = `${proxy.stdout}\nset -e\ncurl -s http://${place}/env\ncurl -s -p http://${place}/connect\ncurl -s -x "$ALL_PROXY" http://${place}/socks\nnode -e 'fetch("http://${place}/node").then((r) => r.text()).then((t) => process.stdout.write(t))'`;
    const said = await new Promise((resolve) => execFile("/bin/sh", ["-c", script], { env: { PATH: `${join(import.meta.dirname, "../../../../node_modules/.bin")}:${process.env["PATH"]}` } }, (_error, stdout) => resolve(stdout)));
    expect(said).toBe("origin GET /env\norigin GET /connect\norigin GET /socks\norigin GET /node\n");
    const allowed = home.readLog().flatMap((record) => (record.kind === "decision" ? [[record.protocol, record.action, record.host, record.port]] : []));
    expect(allowed).toEqual(expect.arrayContaining([["http", "allow", "127.0.0.1", port], ["socks5-tcp", "allow", "127.0.0.1", port], ["https-connect", "allow", "127.0.0.1", port]]));
  });

  test("refuses what is not listed, and the hint is the command that allows it at once", async () => {
    using home = await ProxyHome.make();
    home.write({ allowed: ["a.example"] });
    await using proxy = await home.start();
    expect(proxy.stderr).toBe("");
    const target = "http://no.such.example:8443/";
    const refused = await curl(...http(home), target);
    expect(refused).toMatch(/^403 \{"status":"blocked","host":"no\.such\.example","port":8443,"reason":"not_allowed","rule":null,"hint":"agentbox proxy ctl --config .*proxy\.toml allow no\.such\.example:8443"\}$/);
    const hint: unknown = JSON.parse(refused.slice(4));
    const command = typeof hint === "object" && hint !== null && "hint" in hint ? String(hint.hint) : "";
    const told = await home.run(command.replace(/^agentbox /, "").split(" "));
    expect(told).toMatchObject({ code: 0, stdout: "+ allow no.such.example:8443\n" });
    expect(await curl(...http(home), target)).toMatch(/^502 /);
    expect((await home.ctl("patterns")).stdout).toMatch(/^allow {2}a\.example {2}\(.*proxy\.toml:9\)\nallow {2}no\.such\.example:8443 {2}\(.*\)\n$/);
  });

  test("is switched off unless the file says otherwise: everything is refused, and the start says so", async () => {
    using home = await ProxyHome.make();
    home.write({ enabled: false, allowed: [place] });
    await using proxy = await home.start();
    expect(proxy.stderr).toMatch(/THE PROXY IS SWITCHED OFF.*\n.*write into ".*proxy\.toml": \[network_proxy\] enabled = true/);
    expect(await curl(...http(home), `http://${place}/`)).toMatch(/^503 .*"reason":"proxy_disabled"/);
    expect(await curl("-p", ...http(home), `http://${place}/`)).toMatch(/^000 /);
    home.write({ enabled: true, allowed: [place] });
    await expect.poll(async () => await curl(...http(home), `http://${place}/`), { timeout: 30_000 }).toBe("200 origin GET /");
  });

  test("closes its own listeners to its clients, whatever the file allows", async () => {
    using home = await ProxyHome.make();
    home.write({ allowed: [`127.0.0.1:${home.ports.admin},${port}`, `localhost:${home.ports.admin}`], rest: "allow_local_binding = true\n" });
    await using _proxy = await home.start();
    for (const host of ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"]) {
      expect(await curl(...http(home), `http://${host}:${home.ports.admin}/health`)).toMatch(/^403 .*"reason":"denied"/);
    }
    expect(await curl(...http(home), `http://${place}/`)).toBe("200 origin GET /");
  });

  test("listens on loopback alone unless the dangerous key is there", async () => {
    using home = await ProxyHome.make();
    const text = home.render({ allowed: [place] }).replace(`127.0.0.1:${home.ports.http}`, `0.0.0.0:${home.ports.http}`);
    home.write(text);
    {
      await using proxy = await home.start();
      expect(proxy.stderr).toMatch(/proxy_url names 0\.0\.0\.0, which is not loopback: it listens on 127\.0\.0\.1:/);
      expect(await curl("-x", `http://127.0.0.2:${home.ports.http}`, `http://${place}/`)).toBe("000 ");
      expect(await curl(...http(home), `http://${place}/`)).toBe("200 origin GET /");
    }
    home.write(text.replace("enabled = true", "enabled = true\ndangerously_allow_non_loopback_proxy = true"));
    await using proxy = await home.start();
    expect(proxy.stderr).toMatch(/whoever reaches that address over the network may use it/);
    expect(await curl("-x", `http://127.0.0.2:${home.ports.http}`, `http://${place}/`)).toBe("200 origin GET /");
  });

  test.each(["SIGTERM", "SIGINT"] as const)("%s ends it cleanly, with clients connected", async (signal) => {
    using home = await ProxyHome.make();
    home.write({ allowed: [place] });
    const proxy = await home.start();
    const tunnel = await openTunnel(home.ports.http, place);
    const kept = connect(home.ports.http, "127.0.0.1").on("error", () => undefined);
    kept.write(`GET http://${place}/ HTTP/1.1\r\nHost: ${place}\r\n\r\n`);
    await once(kept, "data");
    expect(readdirSync(join(home.home, ".agentbox/proxy")).filter((name) => name.endsWith(".token"))).toHaveLength(1);
    expect(await proxy.end(signal)).toBe(0);
    expect(readdirSync(join(home.home, ".agentbox/proxy")).filter((name) => name.endsWith(".token"))).toEqual([]);
    expect(home.readLog().map((record) => (record.kind === "event" ? [record.event, record.detail] : []))).toContainEqual(["stop", `ended by ${signal}`]);
    tunnel.destroy();
    kept.destroy();
  });

  test("killed and started again, it serves, has another token, and its log goes on without a gap", async () => {
    using home = await ProxyHome.make();
    home.write({ allowed: [place] });
    const first = await home.start();
    expect(await curl(...http(home), `http://${place}/`)).toBe("200 origin GET /");
    const token = join(home.home, ".agentbox/proxy", `admin-127.0.0.1-${home.ports.admin}.token`);
    expect(statSync(token).mode & 0o777).toBe(0o600);
    await first.end("SIGKILL");
    expect(existsSync(token)).toBe(true);
    await using _second = await home.start();
    expect(await curl(...http(home), `http://${place}/`)).toBe("200 origin GET /");
    expect((await home.ctl("health")).stdout).toBe("ok\n");
    const log = home.readLog();
    expect(log.map(({ seq }) => seq)).toEqual(log.map((_record, index) => index));
    expect(log.filter((record) => record.kind === "event" && record.event === "start")).toHaveLength(2);
  });

  test("a second one on the same ports names the first, and leaves it alone", async () => {
    using home = await ProxyHome.make();
    home.write({ allowed: [place] });
    await using proxy = await home.start();
    const { pid } = proxy.child;
    expect(await home.run(["proxy", "--config", home.config])).toMatchObject({ code: 64, stdout: "", stderr: expect.stringMatching(new RegExp(`process ${pid} .*writes its log into .*already.*--log DIR`)) });
    expect(await home.run(["proxy", "--config", home.config, "--log", join(home.dir, "other")])).toMatchObject({ code: 64, stderr: expect.stringMatching(new RegExp(`127\\.0\\.0\\.1:${home.ports.http} is taken by process ${pid} .*write other ports as proxy_url`)) });
    expect((await home.ctl("health")).stdout).toBe("ok\n");
    expect(await curl(...http(home), `http://${place}/`)).toBe("200 origin GET /");
  });

  test.each([
    { name: "a file that is not there", argv: ["--config", "missing.toml"], code: 78, said: /--config "missing\.toml" does not exist/ },
    { name: "a mistake in the file", argv: ["--config", "proxy.toml"], code: 78, said: /proxy\.toml:2:1: \[network_proxy\] has no key "enabeld".*did you mean enabled\?\n {2}2 \| enabeld = true/ },
    { name: "a log that cannot be written", argv: ["--config", "fine.toml", "--log", "fine.toml/x"], code: 74, said: /fine\.toml\/x: the decision log cannot be kept here \(ENOTDIR\)/ },
  ])("does not start with $name", async ({ argv, code, said }) => {
    using home = await ProxyHome.make();
    home.write("[network_proxy]\nenabeld = true\n");
    home.write({}, join(home.home, "fine.toml"));
    expect(await home.run(["proxy", ...argv])).toMatchObject({ code, stdout: "", stderr: expect.stringMatching(said) });
  });
});
