import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import type { SetDialect } from "./set-dialect.ts";

type Waiting = { errors: string[]; resolve: (errors: string[]) => void };

// Nothing of the keeper's environment is needed; the C locale keeps the answers parseable.
const ENVIRONMENT = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };
const RESTART_MS = 100;
const ANSWER_LIMIT_MS = 5000;
/** Sentences kept of one batch: when a set is full there is one for each line. */
export const MAX_ERRORS = 5;

/**
 * The long-lived `ipset` or `nft` of the keeper: spawning one for each answer would cost twenty times as much.
 * Changes are written in batches, each followed by a question whose answer says that all before is done.
 */
export class SetChild {
  private readonly dialect: SetDialect;
  private readonly onRestart: () => void;
  private child: ChildProcessWithoutNullStreams | undefined;
  private waiting: Waiting[] = [];
  private pending = "";
  /** The last line that was read. */
  private before = "";

  /** `onRestart` is called after the program died and runs again. */
  constructor(dialect: SetDialect, onRestart: () => void) {
    this.dialect = dialect;
    this.onRestart = onRestart;
    this.start();
  }

  /** Applies the lines in order and returns what went wrong, one sentence a line that failed, a few at most; empty when all is in the kernel. */
  apply(lines: readonly string[]): Promise<string[]> {
    const { child } = this;
    if (lines.length === 0) return Promise.resolve([]);
    if (child === undefined) return Promise.resolve(["the program that writes the sets is being restarted"]);
    return new Promise((resolve) => {
      // Ten times what a line takes on a machine with nothing else to do.
      const timer = setTimeout(() => child.kill("SIGKILL"), ANSWER_LIMIT_MS + lines.length);
      const finish = (errors: string[]): void => {
        clearTimeout(timer);
        resolve(errors);
      };
      this.waiting.push({ errors: [], resolve: finish });
      child.stdin.write(`${lines.join("\n")}\n${this.dialect.probe}\n`);
    });
  }

  private start(): void {
    const [file = "", ...args] = this.dialect.argv;
    // Both streams come as one, so that an error is never read after the answer that it stands in front of.
    const child = spawn("/bin/sh", ["-c", 'exec "$0" "$@" 2>&1', file, ...args], { env: ENVIRONMENT, cwd: "/", stdio: "pipe" });
    this.child = child;
    this.pending = "";
    this.before = "";
    child.stdout.setEncoding("utf8");
    child.stdout.on("data", (text: string) => this.read(text));
    child.stdin.on("error", () => undefined);
    child.once("error", () => this.restart(child));
    child.once("close", () => this.restart(child));
  }

  private read(text: string): void {
    const lines = (this.pending + text).replaceAll("ipset> ", "").split("\n");
    this.pending = lines.pop() ?? "";
    for (const line of lines) this.take(line);
  }

  private take(line: string): void {
    const isLast = this.dialect.acknowledgement.test(line);
    const complaint = this.dialect.complain(isLast ? "" : line, this.before);
    this.before = isLast ? "" : line;
    const errors = this.waiting[0]?.errors ?? [];
    if (complaint !== undefined && errors.length < MAX_ERRORS) errors.push(complaint);
    if (isLast) this.waiting.shift()?.resolve(errors);
  }

  private restart(child: ChildProcessWithoutNullStreams): void {
    if (this.child !== child) return;
    this.child = undefined;
    const { waiting } = this;
    this.waiting = [];
    for (const { resolve } of waiting) resolve(["the program that writes the sets has ended"]);
    setTimeout(() => {
      this.start();
      this.onRestart();
    }, RESTART_MS);
  }
}
