import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { patternsAnswerSchema } from "../../../../policy/admin-answers.ts";
import { findPortHolder } from "../../../../proxy/standalone/holder.ts";
import { curl, ProxyHome } from "./proxy-process.ts";

const ROOT = join(import.meta.dirname, "../../../..");
const SLOW = { timeout: 30_000 };

/** A proxy on a terminal of its own, whose screen is read and whose keys are pressed. */
class TerminalProxy implements AsyncDisposable {
  screen = "";
  readonly child: ChildProcess;
  private readonly port: number;
  private readonly exited: Promise<unknown>;

  private constructor(child: ChildProcess, port: number) {
    this.child = child;
    this.port = port;
    this.exited = once(child, "exit");
    child.stdout?.setEncoding("utf8").on("data", (text: string) => (this.screen += text));
  }

  static async start(home: ProxyHome, option = " --approve"): Promise<TerminalProxy> {
    const { env, cwd } = home.options({});
    const command = `${join(ROOT, "node_modules/.bin/node")} ${join(ROOT, "build/cli.mjs")} proxy --config ${home.config}${option}`;
    const proxy = new TerminalProxy(spawn("script", ["-qfec", command, "/dev/null"], { env: { ...env, TERM: "xterm", SHELL: "/bin/sh" }, cwd, stdio: ["pipe", "pipe", "inherit"] }), home.ports.http);
    await proxy.untilShown("export NODE_USE_ENV_PROXY");
    return proxy;
  }

  async untilShown(text: string): Promise<void> {
    await vi.waitUntil(() => this.screen.includes(text), { ...SLOW, interval: 20 });
  }

  press(keys: string): void {
    this.child.stdin?.write(keys);
  }

  countQuestions(host: string): number {
    return this.screen.split(`refused: ${host}`).length - 1;
  }

  async end(): Promise<number | null> {
    await this.exited;
    return this.child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const pid = /^process (?<pid>[0-9]+) /.exec(findPortHolder(this.port) ?? "")?.groups?.["pid"];
    this.child.kill("SIGTERM");
    const late = setTimeout(() => this.child.kill("SIGKILL"), 30_000);
    await this.exited;
    clearTimeout(late);
    if (this.child.signalCode === "SIGKILL") throw new Error(`the proxy did not end; its screen:\n${this.screen}`);
    // The terminal goes before the proxy on it, which has the log until it has ended.
    await vi.waitUntil(() => pid === undefined || !existsSync(`/proc/${pid}/exe`), SLOW);
  }
}

const ask = async ({ ports }: ProxyHome, host: string): Promise<string> => await curl("-x", `http://127.0.0.1:${ports.http}`, `http://${host}/`);
const patterns = async (home: ProxyHome) => patternsAnswerSchema.parse(JSON.parse((await home.ctl("patterns", "--json")).stdout)).allowed;

describe("--approve on a terminal", () => {
  test("asks about a refused host once, without holding anybody up; allowed for the session it is let through, and the file stays", async () => {
    using home = await ProxyHome.make();
    home.write({});
    const before = readFileSync(home.config, "utf8");
    await using proxy = await TerminalProxy.start(home);
    expect(await ask(home, "a.invalid")).toMatch(/^403 .*not_allowed/);
    await proxy.untilShown("refused: a.invalid:80 (http). Allow it [o]nce");
    // Nobody has answered yet.
    expect(await ask(home, "a.invalid")).toMatch(/^403 /);
    proxy.press("x\r");
    await expect.poll(() => proxy.countQuestions("a.invalid"), SLOW).toBe(2);
    proxy.press("s\r");
    await expect.poll(async () => await ask(home, "a.invalid"), SLOW).toMatch(/^502 /);
    expect(await patterns(home)).toEqual([{ text: "a.invalid:80", source: "allowed at the terminal", until: null }]);
    expect(readFileSync(home.config, "utf8")).toBe(before);
    expect(home.readLog()).toContainEqual(expect.objectContaining({ event: "policy-replaced", detail: "answered at the terminal", added: ["allow a.invalid:80"] }));
    // A reload of the file takes nothing back that was said for the session.
    await home.ctl("reload");
    expect(await ask(home, "a.invalid")).toMatch(/^502 /);
  });

  test("always writes the host into the file, in place, and that has it let through", async () => {
    using home = await ProxyHome.make();
    home.write(`# mine\n${home.render({}).replace("allowed_domains = []", "allowed_domains = [\n  'kept.invalid', # why\n]")}`);
    await using proxy = await TerminalProxy.start(home);
    await ask(home, "b.invalid:8443");
    await proxy.untilShown("refused: b.invalid:8443");
    proxy.press("always\r");
    await expect.poll(async () => await ask(home, "b.invalid:8443"), SLOW).toMatch(/^502 /);
    const text = readFileSync(home.config, "utf8");
    expect(text).toMatch(/^# mine\n/);
    expect(text).toContain("  'kept.invalid', # why\n  'b.invalid:8443',\n");
  });

  test("deny leaves it refused for good, once lets it through for a minute, and one host is asked about at a time", async () => {
    using home = await ProxyHome.make();
    home.write({});
    await using proxy = await TerminalProxy.start(home);
    await ask(home, "c.invalid");
    await proxy.untilShown("refused: c.invalid:80");
    await ask(home, "d.invalid");
    expect(proxy.countQuestions("d.invalid")).toBe(0);
    proxy.press("d\r");
    await proxy.untilShown("refused: d.invalid:80");
    proxy.press("o\r");
    await expect.poll(async () => await ask(home, "d.invalid"), SLOW).toMatch(/^502 /);
    expect(await patterns(home)).toEqual([{ text: "d.invalid:80", source: "allowed at the terminal", until: expect.stringMatching(/^\d{4}-/) }]);
    expect(await ask(home, "c.invalid")).toMatch(/^403 /);
    expect(proxy.countQuestions("c.invalid")).toBe(1);
  });

  test("asks nothing about what somebody denied, nor about this machine, nor without the option", async () => {
    using home = await ProxyHome.make();
    home.write({ denied: ["denied.invalid"] });
    {
      await using proxy = await TerminalProxy.start(home);
      expect(await ask(home, "denied.invalid")).toMatch(/^403 .*"reason":"denied"/);
      expect(await ask(home, "127.0.0.1:1")).toMatch(/^403 /);
      expect(await ask(home, "asked.invalid")).toMatch(/^403 /);
      await proxy.untilShown("refused: asked.invalid:80");
      expect([proxy.countQuestions("denied.invalid"), proxy.countQuestions("127.0.0.1")]).toEqual([0, 0]);
    }
    await using quiet = await TerminalProxy.start(home, "");
    expect(await ask(home, "other.invalid")).toMatch(/^403 /);
    home.write({ more: "approve = true" });
    await expect.poll(async () => (await home.ctl("config")).stdout, SLOW).toContain("approve = true");
    // The configuration tells of the option a moment before the terminal asks.
    await expect.poll(async () => [(await ask(home, "third.invalid")).slice(0, 4), quiet.countQuestions("third.invalid")], SLOW).toEqual(["403 ", 1]);
    expect(quiet.countQuestions("other.invalid")).toBe(0);
  });

  test("Ctrl-C at the question ends the proxy, Ctrl-D only the questions", async () => {
    using home = await ProxyHome.make();
    home.write({});
    const proxy = await TerminalProxy.start(home);
    await ask(home, "e.invalid");
    await proxy.untilShown("refused: e.invalid:80");
    proxy.press("\u0003");
    expect(await proxy.end()).toBe(0);
    await using other = await TerminalProxy.start(home);
    await ask(home, "f.invalid");
    await other.untilShown("refused: f.invalid:80");
    other.press("\u0004");
    await other.untilShown("nobody answers any more: hosts that are refused stay refused");
    expect(await ask(home, "g.invalid")).toMatch(/^403 /);
    expect((await home.ctl("health")).stdout).toBe("ok\n");
    expect(other.countQuestions("g.invalid")).toBe(0);
  });
});

test.each([{ when: "while nobody is asked", asks: false }, { when: "at a question", asks: true }])("a terminal that is closed $when ends the proxy cleanly, while SIGHUP has the file read again", async ({ asks }) => {
  using home = await ProxyHome.make();
  home.write({});
  const proxy = await TerminalProxy.start(home);
  const started = /process (?<pid>\d+);/.exec(JSON.stringify(home.readLog()))?.groups?.["pid"];
  process.kill(Number(started), "SIGHUP");
  await proxy.untilShown("the configuration was read again");
  expect((await home.ctl("health")).stdout).toBe("ok\n");
  if (asks) {
    await ask(home, "a.invalid");
    await proxy.untilShown("refused: a.invalid:80");
  }
  proxy.child.kill("SIGKILL");
  await expect.poll(() => home.readLog().map((record) => (record.kind === "event" ? `${record.event} ${record.detail}` : "")), SLOW).toContain("stop its terminal was closed");
  await expect.poll(async () => (await home.ctl("health")).code, SLOW).toBe(69);
});

test("without a terminal nobody is asked, and that is said once", async () => {
  using home = await ProxyHome.make();
  home.write({ more: "approve = true" });
  await using proxy = await home.start();
  expect(await ask(home, "a.invalid")).toMatch(/^403 /);
  expect(await ask(home, "b.invalid")).toMatch(/^403 /);
  expect(proxy.stderr).toBe("agentbox: nobody can be asked, since there is no terminal: hosts that are refused stay refused\n");
});
