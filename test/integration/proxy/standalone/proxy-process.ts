import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DecisionRecord, decisionRecordSchema } from "../../../../policy/decision-record.ts";
import { findFreePort } from "./free-port.ts";

const ROOT = join(import.meta.dirname, "../../../..");
const NODE = join(ROOT, "node_modules/.bin/node");
const CLI = join(ROOT, "build/cli.mjs");

export type Ran = { code: number | null; stdout: string; stderr: string };

/** A user's home, a project in it, and free ports: what starts of `agentbox proxy` share. */
export class ProxyHome {
  readonly dir = mkdtempSync(join(tmpdir(), "agentbox-standalone-"));
  readonly home = join(this.dir, "home");
  readonly project = join(this.dir, "home/project");
  readonly config = join(this.dir, "home/proxy.toml");
  readonly ports: Readonly<Record<"http" | "socks" | "admin", number>>;

  private constructor(ports: ProxyHome["ports"]) {
    this.ports = ports;
    mkdirSync(this.project, { recursive: true });
  }

  static async make(): Promise<ProxyHome> {
    return new ProxyHome({ http: await findFreePort(), socks: await findFreePort(), admin: await findFreePort() });
  }

  /** The text of a configuration; `more` are lines of [network_proxy], `rest` whatever comes behind. */
  render({ enabled = true, allowed = [], denied = [], more = "", rest = "" }: ConfigText): string {
    const { http, socks, admin } = this.ports;
    const own = `[network_proxy]\nenabled = ${enabled}\nproxy_url = "http://127.0.0.1:${http}"\nsocks_url = "http://127.0.0.1:${socks}"\nadmin_url = "http://127.0.0.1:${admin}"\n${more}\n`;
    return `${own}\n[network_proxy.policy]\nallowed_domains = ${JSON.stringify(allowed)}\ndenied_domains = ${JSON.stringify(denied)}\n${rest}`;
  }

  /** Writes the configuration as editors do: another file in its place. */
  write(config: ConfigText | string, file = this.config): void {
    writeFileSync(`${file}.new`, typeof config === "string" ? config : this.render(config));
    renameSync(`${file}.new`, file);
  }

  /** Runs a command line to its end. */
  async run(argv: readonly string[], options: RunOptions = {}): Promise<Ran> {
    return await new Promise((resolve) => {
      const child = execFile(NODE, [CLI, ...argv], this.options(options), (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }));
      child.stdin?.end();
    });
  }

  /** Asks the running proxy. */
  async ctl(...words: string[]): Promise<Ran> {
    return await this.run(["proxy", "ctl", "--config", this.config, ...words]);
  }

  /** Starts a proxy, and waits until it serves. */
  async start(argv: readonly string[] = ["--config", this.config], options: RunOptions = {}): Promise<ProxyProcess> {
    const child = spawn(NODE, [CLI, "proxy", ...argv], { ...this.options(options), stdio: ["ignore", "pipe", "pipe"] });
    const process = new ProxyProcess(child);
    await process.untilPrinted("export NODE_USE_ENV_PROXY");
    return process;
  }

  readLog(directory = join(this.home, ".agentbox/proxy")): DecisionRecord[] {
    return readFileSync(join(directory, "decisions.jsonl"), "utf8").split("\n").filter((line) => line !== "").map((line) => decisionRecordSchema.parse(JSON.parse(line)));
  }

  options({ env = {}, cwd = this.home }: RunOptions): { env: Record<string, string>; cwd: string } {
    return { env: { PATH: process.env["PATH"] ?? "", HOME: this.home, ...env }, cwd };
  }

  [Symbol.dispose](): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}

export type ConfigText = { enabled?: boolean; allowed?: readonly string[]; denied?: readonly string[]; more?: string; rest?: string };
export type RunOptions = { env?: Record<string, string>; cwd?: string };

/** A proxy that runs. */
export class ProxyProcess {
  readonly child: ChildProcess;
  stdout = "";
  stderr = "";
  private readonly exited: Promise<unknown>;

  constructor(child: ChildProcess) {
    this.child = child;
    this.exited = once(child, "exit");
    child.stdout?.setEncoding("utf8").on("data", (text: string) => (this.stdout += text));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (this.stderr += text));
  }

  /** Waits for a word on stdout; throws with all of stderr where the process ends before. */
  async untilPrinted(word: string): Promise<void> {
    while (!this.stdout.includes(word)) {
      if (this.child.exitCode !== null || this.child.signalCode !== null) throw new Error(`the proxy ended: ${this.stderr}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  /** Ends it by a signal, and returns its exit code; null where the signal ended it. */
  async end(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal);
    await this.exited;
    return this.child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGKILL");
  }
}

/** What curl printed, the status in front. */
export async function curl(...args: string[]): Promise<string> {
  return await new Promise((resolve) => {
    execFile("curl", ["-s", "-m", "20", "-w", "\n%{http_code}", ...args], { env: { PATH: process.env["PATH"] ?? "" } }, (_error, stdout) => {
      const cut = stdout.lastIndexOf("\n");
      resolve(`${stdout.slice(cut + 1)} ${stdout.slice(0, cut).trim()}`);
    });
  });
}
