import { existsSync, openSync, readFileSync } from "node:fs";
import { BOX_SPEC_PATH, type BoxSpec, boxSpecSchema, LAUNCH_DIR, PROGRESS_FILE } from "../policy/box-spec.ts";
import { ConfigError, FirewallError, KnownError } from "../policy/errors.ts";
import { boot, requireMounts, StepError } from "./boot.ts";
import { runCommand } from "./commands.ts";
import { awaitHandOver, execAgent } from "./exec-agent.ts";
import { passGate } from "./gate.ts";
import { ALLOWLIST_DIR } from "./load-policy.ts";
import { type Log, writeJsonLines, writePlainLines } from "./log.ts";
import { linkLogins } from "./login.ts";

const STDERR = 2;

export { warmProgramCaches } from "./program-cache.ts";

/** The entrypoint of a box: firewall, then the agent in this very process. Ends the process on failure. */
export async function main(): Promise<void> {
  // Whatever ends this process without a word must not look like the agent's own end.
  process.exitCode = 70;
  // Files made from here on are readable by others unless they say so; the agent inherits the usual mask.
  process.umask(0o022);
  const progress = existsSync(LAUNCH_DIR) ? `${LAUNCH_DIR}/${PROGRESS_FILE}` : undefined;
  const log = progress === undefined ? chooseLines() : writeJsonLines(openSync(progress, "ax", 0o644));
  try {
    const spec = readBoxSpec();
    await prepare(spec, log);
    // A holder has no terminal to wait for.
    if (progress !== undefined && spec.role !== "holder") await awaitHandOver(progress);
    execAgent(spec);
  } catch (error) {
    process.exitCode = report(error, log);
  }
}

async function prepare(spec: BoxSpec, log: Log): Promise<void> {
  if (!spec.firewall) await requireMounts(spec);
  else if (spec.role === "agent") await passGate(spec, log);
  else await boot({ spec, allowlistDir: ALLOWLIST_DIR, run: runCommand, log });
  if (spec.role === "holder") return;
  // A box without its shared login is a nuisance, not a hole: the agent asks for a login then.
  await linkLogins(spec).catch((error: unknown) => log({ event: "warning", step: "login", text: String(error) }));
  if (!spec.firewall) log({ event: "ready", text: "firewall off: this box reaches everything", ms: Math.round(performance.now()) });
}

/**
 * Reads what the command line handed over, and refuses when the container's environment says otherwise:
 * a box must never run open because one of two places was missed.
 */
function readBoxSpec(): BoxSpec {
  const parsed = boxSpecSchema.safeParse(readJson(BOX_SPEC_PATH));
  if (!parsed.success) {
    throw new ConfigError(
      parsed.error.issues.map(({ path, message }) => ({
        place: { file: BOX_SPEC_PATH },
        what: `${path.join(".")}: ${message}`,
        fix: "the image and the command line differ in version; run agentbox --rebuild",
      })),
    );
  }
  const asked = process.env["AGENTBOX_FIREWALL"];
  if (asked !== (parsed.data.firewall ? "1" : "0")) {
    throw new FirewallError({
      what: `AGENTBOX_FIREWALL is ${asked ?? "not set"}, but the box specification says firewall ${parsed.data.firewall ? "on" : "off"}`,
      fix: "start boxes with the agentbox command",
    });
  }
  return parsed.data;
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error);
    throw new ConfigError({ place: { file }, what, expected: "the box's specification", fix: "start boxes with the agentbox command" }, { cause: error });
  }
}

function chooseLines(): Log {
  return process.env["AGENTBOX_LOG"] === "json" ? writeJsonLines(STDERR) : writePlainLines(STDERR);
}

/** Says why the start ended and returns the exit code; what is not a known failure keeps its stack and counts as 70. */
function report(error: unknown, log: Log): number {
  const step = error instanceof StepError ? error.stepName : "start";
  const cause = error instanceof StepError ? error.cause : error;
  const known = cause instanceof KnownError;
  const exitCode = known ? cause.exitCode : 70;
  const text = known ? cause.message : cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
  log({ event: "failed", step, text, exitCode });
  return exitCode;
}
