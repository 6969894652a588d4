import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** The built command line, as users run it; vitest builds it first. */
const PROGRAM = path.join(import.meta.dirname, "../../../build/cli.mjs");

export type Outcome = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };

/** A home, a project and an engine's client that does what a test tells it. */
export class FakeEngine {
  readonly #root = mkdtempSync(path.join(tmpdir(), "agentbox cli "));
  readonly project = path.join(this.#root, "my project");
  readonly home = path.join(this.#root, "home");
  readonly #fake = path.join(this.#root, "fake");

  constructor() {
    for (const directory of [this.project, this.home, this.#fake]) mkdirSync(directory);
  }

  /** Makes one verb of the client run a piece of shell first; `undefined` makes it answer as usual again. */
  answer(verb: string, shell: string | undefined): void {
    const file = path.join(this.#fake, verb);
    if (shell === undefined) rmSync(file, { force: true });
    else writeFileSync(file, `${shell}\n`);
  }

  start(argv: readonly string[], env: Readonly<Record<string, string>> = {}): { child: ChildProcess; outcome: Promise<Outcome> } {
    return this.#spawn(process.execPath, [PROGRAM, ...argv], env);
  }

  #spawn(file: string, argv: readonly string[], env: Readonly<Record<string, string>>): { child: ChildProcess; outcome: Promise<Outcome> } {
    const child = spawn(file, argv, {
      cwd: this.project,
      env: { PATH: `${path.join(import.meta.dirname, "fixtures")}:${process.env["PATH"]}`, HOME: this.home, FAKE: this.#fake, ...env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    if (file !== "script") child.stdin.end();
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
    const outcome = once(child, "close").then(() => ({ code: child.exitCode, signal: child.signalCode, stdout, stderr }));
    return { child, outcome };
  }

  /** Runs with a terminal as stdin and stdout, one that cannot move its cursor, so that the steps are lines. */
  startOnTerminal(argv: readonly string[]): { child: ChildProcess; outcome: Promise<Outcome> } {
    const command = [process.execPath, PROGRAM, ...argv].map((word) => `'${word}'`).join(" ");
    return this.#spawn("script", ["--quiet", "--return", "--command", command, "/dev/null"], { TERM: "dumb" });
  }

  /** Runs a piece of shell in the project, in which `agentbox` is the command line. */
  async runShell(script: string, env: Readonly<Record<string, string>> = {}): Promise<Outcome> {
    const agentbox = `agentbox() { '${process.execPath}' '${PROGRAM}' "$@"; }`;
    return await this.#spawn("bash", ["-c", `${agentbox}\n${script}`], env).outcome;
  }

  async run(argv: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Outcome> {
    return await this.start(argv, env).outcome;
  }

  /** The calls that the client has had, one a line. */
  calls(): string[] {
    const file = path.join(this.#fake, "calls");
    return existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : [];
  }

  async awaitCall(start: string): Promise<void> {
    while (!this.calls().some((call) => call.startsWith(start))) await sleep(10);
  }

  /** Ids of the sessions that have left something. */
  sessions(): string[] {
    const directory = path.join(this.home, ".agentbox/sessions");
    return existsSync(directory) ? readdirSync(directory) : [];
  }

  /** What lies in the project, mount points included. */
  projectFiles(): string[] {
    return readdirSync(this.project);
  }

  remove(): void {
    rmSync(this.#root, { recursive: true, force: true });
  }
}
