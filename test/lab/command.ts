import { spawn } from "node:child_process";
import { EngineError } from "../../policy/errors.ts";

/** How a command ended; a signal counts as 128 + its number, a time limit as 124. */
export type CommandResult = { exitCode: number; stdout: string; stderr: string };

export type CommandOptions = {
  input?: string;
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  uid?: number;
  gid?: number;
  timeoutMs?: number;
};

const SIGNALS: Partial<Record<NodeJS.Signals, number>> = { SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGPIPE: 13, SIGTERM: 15 };
const DEFAULT_TIMEOUT_MS = 60_000;

/** Runs an argv without a shell and collects its output; never throws for an exit code. */
export function runCommand(argv: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  const [file = "", ...args] = argv;
  const { input, timeoutMs = DEFAULT_TIMEOUT_MS, ...rest } = options;
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { ...rest, stdio: ["pipe", "pipe", "pipe"] });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      child.kill("SIGKILL");
    }, timeoutMs);
    child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => err.push(chunk));
    // The command may end without reading its input.
    child.stdin.on("error", () => {});
    child.stdin.end(input ?? "");
    child.on("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      const exitCode = late ? 124 : (code ?? 128 + (signal === null ? 0 : (SIGNALS[signal] ?? 0)));
      resolve({ exitCode, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() });
    });
  });
}

/** Runs a command that must succeed and returns its standard output; the error names command and cause. */
export async function mustRun(argv: readonly string[], options: CommandOptions = {}): Promise<string> {
  const result = await runCommand(argv, options);
  if (result.exitCode === 0) return result.stdout;
  throw new EngineError({ what: `lab: ${argv.join(" ")} ended with ${result.exitCode}: ${result.stderr.trim() || result.stdout.trim()}` });
}
