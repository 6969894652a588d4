import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { reloadAnswerSchema } from "../../../../policy/admin-answers.ts";
import type { DecisionRecord } from "../../../../policy/decision-record.ts";
import { findFreePort } from "./free-port.ts";
import { curl, ProxyHome } from "./proxy-process.ts";
import { openTunnel, readAll, untilClosed } from "./tunnel-client.ts";

const SLOW = { timeout: 30_000 };

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
const OTHER = "127.0.0.3";

function events(home: ProxyHome): Extract<DecisionRecord, { kind: "event" }>[] {
  return home.readLog().filter((record) => record.kind === "event");
}

/** The ways to have the file read again. */
const WAYS = {
  "a change of the file": async () => undefined,
  SIGHUP: async (_home: ProxyHome, hup: () => void) => hup(),
  "the admin API": async (home: ProxyHome) => void (await home.ctl("reload")),
} as const;

describe("a reload", () => {
  test.each(Object.entries(WAYS))("by %s has the new list in force, cuts the tunnels that it does not allow, and tells the entries in the log", async (_name, reload) => {
    using home = await ProxyHome.make();
    home.write({ allowed: [place, `${OTHER}:${port}`] });
    await using proxy = await home.start();
    const tunnel = await openTunnel(home.ports.http, place);
    const cut = untilClosed(tunnel);
    expect(await curl(...http(home), `http://new.invalid/`)).toMatch(/^403 .*not_allowed/);
    home.write({ allowed: ["http://new.invalid", `${OTHER}:${port}`], denied: ["127.0.0.1"] });
    await reload(home, () => void proxy.child.kill("SIGHUP"));
    await cut;
    expect(await curl(...http(home), `http://${place}/`)).toMatch(/^403 .*"reason":"denied","rule":"deny 127\.0\.0\.1/);
    expect(await curl(...http(home), `http://new.invalid/`)).toMatch(/^502 /);
    expect(events(home)).toContainEqual(expect.objectContaining({ event: "policy-replaced", added: ["allow new.invalid:80,443", "deny 127.0.0.1"], removed: [`allow ${place}`] }));
    expect(home.readLog()).toContainEqual(expect.objectContaining({ kind: "decision", action: "deny", protocol: "https-connect", host: "127.0.0.1", port }));
    expect((await home.ctl("health")).stdout).toBe("ok\n");
  });

  test("of a broken file changes nothing, is told as such, and is over with the next good one", async () => {
    using home = await ProxyHome.make();
    home.write({ allowed: [place] });
    await using proxy = await home.start();
    const tunnel = await openTunnel(home.ports.http, place);
    home.write(home.render({ allowed: [] }).replace("enabled = true", 'enabled = "yes"\nmode = "limitd"'));
    const refused = await home.ctl("reload");
    expect(refused.code).toBe(78);
    expect(refused.stderr).toMatch(/proxy\.toml:2:11: network_proxy\.enabled is a string; expected true or false\n.*\^\^\^\^\^\nagentbox: .*proxy\.toml:3:8: network_proxy\.mode is "limitd"/s);
    const health = await home.ctl("health");
    expect([health.code, health.stdout]).toEqual([1, expect.stringMatching(/^degraded: the configuration in force is older than the file, which is refused: .*proxy\.toml:2:11/)]);
    expect(await curl(...http(home), `http://${place}/`)).toBe("200 origin GET /");
    expect(proxy.child.exitCode).toBeNull();
    expect(events(home)).toContainEqual(expect.objectContaining({ event: "policy-refused" }));
    home.write({ allowed: [place] });
    await expect.poll(async () => (await home.ctl("health")).stdout, SLOW).toBe("ok\n");
    tunnel.write(`GET / HTTP/1.1\r\nHost: ${place}\r\nConnection: close\r\n\r\n`);
    expect(await readAll(tunnel)).toMatch(/^HTTP\/1\.1 200 /);
  });

  test("of a file that is gone is refused, and one that comes back is taken", async () => {
    using home = await ProxyHome.make();
    home.write({ allowed: [place] });
    await using _proxy = await home.start();
    execFileSync("rm", [home.config]);
    await expect.poll(() => events(home).map(({ event }) => event), SLOW).toContain("policy-refused");
    expect(await curl(...http(home), `http://${place}/`)).toBe("200 origin GET /");
    home.write({ denied: ["127.0.0.1"] });
    await expect.poll(async () => await curl(...http(home), `http://${place}/`), SLOW).toMatch(/^403 /);
  });

  test("of a file that was written half and then whole ends with the whole one", async () => {
    using home = await ProxyHome.make();
    home.write({ allowed: [] });
    await using _proxy = await home.start();
    const text = home.render({ allowed: [place] });
    writeFileSync(home.config, text.slice(0, text.length - 20));
    await new Promise((resolve) => setTimeout(resolve, 30));
    writeFileSync(home.config, text);
    await expect.poll(async () => await curl(...http(home), `http://${place}/`), SLOW).toBe("200 origin GET /");
    expect((await home.ctl("health")).stdout).toBe("ok\n");
  });

  test("tells which keys need a restart, and leaves the listeners where they are", async () => {
    using home = await ProxyHome.make();
    home.write({ allowed: [place] });
    await using _proxy = await home.start();
    const moved = await findFreePort();
    const { admin } = home.ports;
    home.write(home.render({ allowed: [place, "new.invalid"], more: "[network_proxy.mitm]\nenabled = true" }).replace(`127.0.0.1:${home.ports.http}`, `127.0.0.1:${moved}`));
    const answer = await home.ctl("reload", "--json");
    expect(reloadAnswerSchema.parse(JSON.parse(answer.stdout))).toMatchObject({ restart_needed: ["proxy_url", "mitm.enabled"] });
    expect(await curl(...http(home), `http://${place}/`)).toBe("200 origin GET /");
    expect(await curl("-x", `http://127.0.0.1:${moved}`, `http://${place}/`)).toBe("000 ");
    const shown = (await home.ctl("config")).stdout;
    expect(shown).toMatch(/# from the next start on: proxy_url, mitm\.enabled/);
    expect(shown).toContain(`admin_url = "http://127.0.0.1:${admin}"`);
  });
});

describe("the mode", () => {
  test.each(["SIGHUP", "the admin API"])("is set by the API until the next reload, by %s, and the file's again after it", async (way) => {
    using home = await ProxyHome.make();
    home.write({ allowed: [place] });
    await using proxy = await home.start();
    const post = async (): Promise<string> => await curl("-X", "POST", ...http(home), `http://${place}/`);
    expect(await post()).toBe("200 origin POST /");
    const tunnel = await openTunnel(home.ports.http, place);
    const cut = untilClosed(tunnel);
    expect((await home.ctl("mode", "limited")).stdout).toBe("mode limited until the next reload\n");
    await cut;
    expect(await post()).toMatch(/^403 .*"reason":"method_not_allowed"/);
    expect(await curl(...http(home), `http://${place}/`)).toBe("200 origin GET /");
    expect(await curl("-p", ...http(home), `http://${place}/`)).toMatch(/^000 /);
    if (way === "SIGHUP") proxy.child.kill("SIGHUP");
    else await home.ctl("reload");
    await expect.poll(post, SLOW).toBe("200 origin POST /");
    expect(events(home)).toContainEqual(expect.objectContaining({ event: "mode-changed", detail: "mode full → limited" }));
    expect(events(home)).toContainEqual(expect.objectContaining({ event: "policy-replaced", detail: `asked for by ${way}; mode limited → full` }));
  });
});

describe("the log", () => {
  test("on a full disk denies everything, says so, and all is well when there is room again", async () => {
    using home = await ProxyHome.make();
    home.write({ allowed: [place, `${OTHER}:${port}`] });
    const disk = join(home.dir, "disk");
    mkdirSync(disk);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", disk]);
    try {
      await using _proxy = await home.start(["--config", home.config, "--log", disk]);
      expect(await curl(...http(home), `http://${place}/a`)).toBe("200 origin GET /a");
      execFileSync("sh", ["-c", "dd if=/dev/zero of=filler bs=1k count=100 2>/dev/null || true"], { cwd: disk });
      // The first line that finds no room is that of another host; what was let through before is let through no more either.
      expect(await curl(...http(home), `http://refused.invalid/${"x".repeat(5000)}`)).toMatch(/^(?:403|503) /);
      await expect.poll(async () => {
        await curl(...http(home), `http://filler-${Date.now()}.invalid/`);
        return await curl(...http(home), `http://${place}/b`);
      }, SLOW).toMatch(/^503 .*"reason":"proxy_disabled"/);
      expect((await home.ctl("health")).stdout).toMatch(/^degraded: the decision log cannot be written: .*ENOSPC/);
      execFileSync("rm", [join(disk, "filler")]);
      await expect.poll(async () => await curl(...http(home), `http://${place}/c`), SLOW).toBe("200 origin GET /c");
      expect((await home.ctl("health")).stdout).toBe("ok\n");
      const log = home.readLog(disk);
      expect(log.map(({ seq }) => seq)).toEqual(log.map((_record, index) => index));
    } finally {
      execFileSync("umount", ["-l", disk]);
    }
  });

  test("is followed by the events of the API, line by line", async () => {
    using home = await ProxyHome.make();
    home.write({ allowed: [place] });
    await using _proxy = await home.start();
    const { env, cwd } = home.options({});
    const follower = spawn(process.execPath, [join(import.meta.dirname, "../../../../build/cli.mjs"), "proxy", "ctl", "--config", home.config, "events", "--json"], { env, cwd, stdio: ["ignore", "pipe", "inherit"] });
    try {
      const lines = createInterface({ input: follower.stdout });
      const first = once(lines, "line");
      // Until the stream is open nothing is told, and repeats are only counted.
      let count = 0;
      const asking = setInterval(() => void curl(...http(home), `http://host-${(count += 1)}.invalid/`), 200);
      const [line] = await first;
      clearInterval(asking);
      expect(JSON.parse(String(line))).toMatchObject({ kind: "decision", action: "deny", reason: "not_allowed" });
      expect(home.readLog()).toContainEqual(JSON.parse(String(line)));
    } finally {
      follower.kill();
    }
  });
});
