import { execa } from "execa";
import { EngineError } from "../../policy/errors.ts";

/** How a call of the engine's client ended. `exitCode` is null when it was killed by a signal. */
export type EngineResult = { exitCode: number | null; stdout: string; stderr: string };

/** Every call but an attached session has a time limit, since a daemon may stop answering at any time. */
type CallOptions = {
  /** 0 for none. */
  timeoutMs?: number;
  /** Ends the call early, for a build or a pull that the user interrupts. */
  signal?: AbortSignal | undefined;
  /** Called with each line of stdout and stderr while the call runs. */
  onLine?: (line: string) => void;
  /** Text for the call's stdin, which is otherwise empty. */
  input?: string;
  env?: Readonly<Record<string, string>>;
};

/** The engine's command-line client: the only way in which the product talks to an engine. */
export type EngineClient = {
  program: string;
  /** Runs one call and returns how it ended, whatever its exit code. Throws EngineError when it does not answer. */
  call(argv: readonly string[], options?: CallOptions): Promise<EngineResult>;
  /** Runs one call on the user's own stdin, stdout and stderr. */
  inherit(argv: readonly string[], options: InheritOptions): Promise<number | null>;
  /** Starts a call that speaks over pipes until it is ended. */
  pipe(argv: readonly string[]): EnginePipe;
};

type InheritOptions = {
  /** `group`: the terminal's own process group, so that a change of its size arrives; `apart`: Ctrl-C is ours alone. */
  signals: "group" | "apart";
  stdin: boolean;
};

type EnginePipe = {
  stdin: NodeJS.WritableStream;
  stdout: NodeJS.ReadableStream;
  ended: Promise<number | null>;
  end: () => void;
};

/** There is no such program on this machine, or it is no program. */
export class MissingProgram extends EngineError {}

const defaultTimeoutMs = 15_000;

/** Exit code of a program that ended because nobody reads its output. */
export const brokenPipeCode = 141;

/** Between SIGTERM and SIGKILL for a client that is to end. */
const graceMs = 2_000;

/** Returns a client for `program`, which may be a name on PATH or a path. */
export function createEngineClient(program: string): EngineClient {
  return {
    program,
    call: (argv, options = {}) => callEngine(program, argv, options),
    inherit: (argv, options) => inheritEngine(program, argv, options),
    pipe: (argv) => pipeEngine(program, argv),
  };
}

async function callEngine(program: string, argv: readonly string[], options: CallOptions): Promise<EngineResult> {
  const { timeoutMs = defaultTimeoutMs, signal, onLine, input, env = {} } = options;
  const child = execa(program, argv, {
    reject: false,
    ...(input === undefined ? { stdin: "ignore" } : { input }),
    all: true,
    // Its own process group: the terminal's Ctrl-C reaches the command line only, which then tidies up in order.
    detached: true,
    env: { LC_ALL: "C", ...env },
  });
  const limit = limitCall(child.pid, timeoutMs, signal);
  if (onLine !== undefined) void readLines(child.iterable({ from: "all" }), onLine);
  const result = await child;
  limit.close();
  if (limit.isOver()) throw silentEngine(program, argv, timeoutMs);
  if (result.code === "ENOENT" || result.code === "EACCES") throw missingProgram(program);
  return { exitCode: result.exitCode ?? null, stdout: result.stdout, stderr: result.stderr };
}

/**
 * Ends a call at its time limit or at `signal`, with all that it started: a client that is a wrapper, or has
 * helpers, would leave them behind with our pipe in their hands, and the call would never be over.
 */
function limitCall(pid: number | undefined, timeoutMs: number, signal: AbortSignal | undefined): { isOver: () => boolean; close: () => void } {
  let over = false;
  const timers: NodeJS.Timeout[] = [];
  const end = (): void => {
    killGroup(pid, "SIGTERM");
    timers.push(setTimeout(() => killGroup(pid, "SIGKILL"), graceMs));
  };
  const endLate = (): void => {
    over = true;
    end();
  };
  if (timeoutMs > 0) timers.push(setTimeout(endLate, timeoutMs));
  if (signal?.aborted === true) end();
  else signal?.addEventListener("abort", end, { once: true });
  const close = (): void => {
    for (const timer of timers) clearTimeout(timer);
    signal?.removeEventListener("abort", end);
  };
  return { isOver: () => over, close };
}

function killGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // It has ended meanwhile.
  }
}

async function readLines(lines: AsyncIterable<string>, onLine: (line: string) => void): Promise<void> {
  try {
    for await (const line of lines) onLine(line);
  } catch {
    // The call's own result tells how it failed; the stream only repeats that.
  }
}

async function inheritEngine(program: string, argv: readonly string[], options: InheritOptions): Promise<number | null> {
  const result = await execa(program, argv, {
    reject: false,
    stdin: options.stdin ? "inherit" : "ignore",
    stdout: "inherit",
    stderr: "inherit",
    detached: options.signals === "apart",
  });
  if (result.code === "ENOENT" || result.code === "EACCES") throw missingProgram(program);
  // As shells have it: the client's own reader went away.
  return result.exitCode ?? (result.signal === "SIGPIPE" ? brokenPipeCode : null);
}

function pipeEngine(program: string, argv: readonly string[]): EnginePipe {
  const child = execa(program, argv, { reject: false, detached: true, buffer: false, stderr: "ignore", stdin: "pipe", encoding: "buffer" });
  return {
    stdin: child.stdin,
    stdout: child.stdout,
    ended: child.then((result) => result.exitCode ?? null),
    end: () => killGroup(child.pid, "SIGTERM"),
  };
}

function silentEngine(program: string, argv: readonly string[], timeoutMs: number): EngineError {
  return new EngineError({
    what: `${program} ${argv[0] ?? ""} did not answer within ${Math.round(timeoutMs / 1000)} s`,
    expected: "an engine that answers",
    fix: "restart the engine and start again; what this run left is removed by the next start",
  });
}

function missingProgram(program: string): MissingProgram {
  return new MissingProgram({
    what: `${program} is not installed or cannot be executed`,
    expected: "Docker or Podman",
    fix: "install one of them, or name the other one with --engine",
  });
}
