import { EngineError } from "../../policy/errors.ts";
import { mustRun, runCommand, type CommandResult } from "./command.ts";

export type EngineName = "docker" | "podman";

/** The engine's command line; `run` throws for a failure, `attempt` reports it. */
export type EngineCommand = {
  readonly name: EngineName;
  run(args: readonly string[], timeoutMs?: number): Promise<string>;
  attempt(args: readonly string[], timeoutMs?: number): Promise<CommandResult>;
};

const DEFAULT_TIMEOUT_MS = 30_000;

/** Opens the command line of an engine; a missing one is reported by the first call. */
export function openEngine(engine: EngineName): EngineCommand {
  const environment = Object.fromEntries(Object.entries(process.env).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])));
  const explain = (cause: unknown) => {
    throw new EngineError({ what: `lab: ${engine} cannot be run`, fix: `install ${engine} or name the other engine` }, { cause });
  };
  return {
    name: engine,
    run: async (args, timeoutMs = DEFAULT_TIMEOUT_MS) => await mustRun([engine, ...args], { env: environment, timeoutMs }).catch((error: unknown) => (isMissing(error) ? explain(error) : Promise.reject(error))),
    attempt: async (args, timeoutMs = DEFAULT_TIMEOUT_MS) => await runCommand([engine, ...args], { env: environment, timeoutMs }).catch(explain),
  };
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
