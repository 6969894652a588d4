import { execFile } from "node:child_process";

/**
 * What a program of the host answered; `exitCode` is null when it could not be started or was cut short.
 * `cut` says that it ran out of time or said too much.
 */
type HostAnswer = { exitCode: number | null; stdout: string; stderr: string; cut?: boolean };

/** Runs a program of the host with an argv, never through a shell. Injected, so that planners can be tested without one. */
export type HostRunner = (argv: readonly [string, ...string[]], options?: { cwd?: string; input?: string }) => Promise<HostAnswer>;

const LIMIT_MS = 10_000;
const MAX_BYTES = 4 * 1024 * 1024;

/** Variables by which a caller (a git hook, say) would make git look at another repository than the one asked about. */
const REDIRECTING = new Set(["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_CONFIG", "GIT_NAMESPACE"]);

/** Runs `argv` with LC_ALL=C and no input but the given; a program that is missing is an answer, not an error. */
export const runHostCommand: HostRunner = ([file, ...args], { cwd, input = "" } = {}) =>
  new Promise((resolve) => {
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !REDIRECTING.has(name)));
    const options = { cwd, env: { ...env, LC_ALL: "C" }, timeout: LIMIT_MS, maxBuffer: MAX_BYTES, encoding: "utf8" } as const;
    const child = execFile(file, args, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : error.code;
      const cut = error !== null && (error.killed === true || code === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER");
      resolve({ exitCode: typeof code === "number" ? code : null, cut, stdout, stderr: stderr === "" && error !== null ? error.message : stderr });
    });
    // A program that ends without reading is judged by its answer.
    child.stdin?.on("error", () => undefined).end(input);
  });
