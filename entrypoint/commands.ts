import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { $, ProcessOutput } from "zx/core";

/** A program that did not end with 0. `stderr` is what it printed, trimmed. */
export class CommandError extends Error {
  readonly argv: readonly string[];
  readonly exit: string;
  readonly stderr: string;

  constructor(argv: readonly string[], exit: string, stderr: string) {
    super(`${argv.join(" ")} ended with ${exit}${stderr === "" ? "" : `: ${stderr}`}`);
    this.name = "CommandError";
    this.argv = argv;
    this.exit = exit;
    this.stderr = stderr;
  }
}

/** Runs one program with `input` on its standard input and returns its standard output; throws CommandError. */
export type RunCommand = (argv: readonly string[], input?: string) => Promise<string>;

// Nothing of the container's environment reaches a tool that runs as root; the C locale keeps its words parseable.
const TOOL_ENVIRONMENT = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };

const LIMIT_MS = 20_000;

/** Runs programs through zx, but spawned from the argv itself: no shell ever reads a word of it. */
export const runCommand: RunCommand = async (argv, input = "") => {
  const [file, ...rest] = argv;
  if (file === undefined) throw new TypeError("an empty argv");
  const spawnArgv = (_file: string, _args: readonly string[], options: SpawnOptions): ChildProcess => {
    const child = spawn(file, rest, { ...options, shell: false });
    // A tool that dies before it has read its input is known by its exit; the broken pipe adds nothing.
    child.stdin?.on("error", () => undefined);
    return child;
  };
  const shell = $({
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- zx types this as Node's overloaded spawn and calls only the form above
    spawn: spawnArgv as typeof spawn,
    env: TOOL_ENVIRONMENT,
    input,
    quiet: true,
    timeout: LIMIT_MS,
    timeoutSignal: "SIGKILL",
  });
  try {
    const output = await shell`${[...argv]}`;
    return output.stdout;
  } catch (error) {
    if (!(error instanceof ProcessOutput)) throw error;
    const exit = error.signal === null ? `exit code ${error.exitCode}` : `signal ${error.signal}`;
    throw new CommandError(argv, exit, error.stderr.trim());
  }
};
