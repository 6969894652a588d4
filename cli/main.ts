import { readFileSync, statSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { homedir } from "node:os";
import path from "node:path";
import { isatty } from "node:tty";
import { AGENT_PROFILES } from "../policy/agent-profile-data.ts";
import { type Complaint, KnownError, OutputError, renderComplaint, UsageError } from "../policy/errors.ts";
import { escapeUnseen } from "../policy/parsed.ts";
import { type Command, parseCommandLine } from "./args.ts";
import type { PolicyCommand } from "./args-policy.ts";
import { renderHelp } from "./args-help.ts";
import type { Edge } from "./edge.ts";
import type { Host } from "./host.ts";
import { findAgentboxHome, isUsableHome, requireHome } from "./session/home.ts";
import { Interrupted } from "./session/interruption.ts";
import { LaunchFailure } from "./session/launch.ts";
import { askOnTerminal } from "./ui/question.ts";
import type { Screen } from "./ui/screen.ts";
import { chooseStyle, openScreen } from "./ui/screen.ts";

const root = path.join(import.meta.dirname, "..");

/** The edge of the command line: arguments and environment in, text and an exit code out. */
async function main(argv: readonly string[]): Promise<number> {
  const agents = AGENT_PROFILES.flatMap(({ name, package: agentPackage }) => (agentPackage === null ? [] : [name]));
  try {
    return await perform(parseCommandLine(argv, { agents, checkPath, firewall: process.env["AGENTBOX_FIREWALL"], log: process.env["AGENTBOX_LOG"] }), agents);
  } catch (error) {
    return explain(error);
  }
}

async function perform(command: Command, agents: readonly string[]): Promise<number> {
  switch (command.verb) {
    case "help":
      await print(renderHelp(command.topic, agents, process.stdout.columns));
      return 0;
    case "version":
      await print(`agentbox ${readVersion()}\n`);
      return 0;
    case "ssh-init":
      await print(await (await import("./commands/ssh-init.ts")).initSsh(describeHost()));
      return 0;
    case "doctor":
      return await examineMachine(command);
    case "cleanup": {
      const lines = await (await import("./commands/cleanup.ts")).cleanUp(describeHost(), command.options.engine);
      await print(`${lines.join("\n")}\n`);
      return 0;
    }
    case "rebuild": {
      const host = describeHost();
      // Nothing takes the terminal over afterwards, so only stdout decides.
      const screen = await show({ ...host, terminal: isatty(1) });
      const line = await (await import("./commands/rebuild.ts")).rebuild({ host, screen }, command);
      await print(`${line}\n`);
      return 0;
    }
    case "start":
    case "login":
    case "shell":
    case "run":
      return await performBox(command);
    case "setup":
    case "policy show":
    case "policy explain":
    case "policy check":
    case "policy diff":
    case "policy presets":
    case "policy apply":
    case "policy allow":
    case "policy deny":
    case "policy trust":
    case "policy suggest":
    case "blocked":
    case "logs":
    case "logs stats":
    case "confirm list":
    case "confirm approve":
    case "confirm deny":
    case "audit show":
    case "audit verify":
    case "audit summary":
    case "mcp":
    case "preflight":
    case "proxy":
    case "proxy ctl":
    case "proxy seatbelt-profile":
      return await performPolicy(command);
    case "hook claude":
      return await performHook();
  }
}

async function performPolicy(command: Exclude<PolicyCommand, { verb: "hook claude" }>): Promise<number> {
  const { answerPolicy } = await import("./commands/policy.ts");
  return await answerPolicy(describeEdge(), command);
}

/** A hook that fails must not hold up the work of an agent: the walls decide. */
async function performHook(): Promise<number> {
  try {
    const { answerClaudeHook } = await import("./commands/hook.ts");
    await answerClaudeHook(describeEdge(), await readInput());
  } catch (error) {
    explain(error);
    process.stderr.write("agentbox: hook: nothing is decided\n");
  }
  return 0;
}

function describeEdge(): Edge {
  return {
    host: describeHost(),
    print: async (text) => await print(escapeUnseen(text)),
    say: (line) => void process.stderr.write(`agentbox: ${escapeUnseen(line)}\n`),
  };
}

/** A tool's input may hold a whole file; more than this is no command. */
const MAX_INPUT = 16 * 1024 * 1024;

async function readInput(): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of process.stdin) {
    chunks.push(Buffer.from(chunk));
    length += chunk.length;
    if (length > MAX_INPUT) throw new UsageError({ what: "stdin holds more than 16 MiB", expected: "the input of one hook" });
  }
  return Buffer.concat(chunks).toString("utf8");
}

async function performBox(command: Extract<Command, { verb: "start" | "login" | "shell" | "run" }>): Promise<number> {
  const described = describeHost();
  const host = { ...described, terminal: described.terminal && !command.options.batch };
  const { settleRequest } = await import("./session/settle-request.ts");
  const request = await settleRequest(host, command, host.terminal ? askOnTerminal : undefined);
  if (command.options.dryRun) {
    const { dryRun } = await import("./commands/dry-run.ts");
    await print(escapeUnseen(await dryRun(host, request, { report: () => {}, tell: () => {}, close: async () => {} })));
    return 0;
  }
  const { runBox } = await import("./session/run-box.ts");
  return await runBox({ host, screen: await show(host) }, request);
}

async function examineMachine({ options }: Extract<Command, { options: unknown }>): Promise<number> {
  const { examine, renderFindings } = await import("./commands/doctor.ts");
  const findings = await examine(describeHost(), options.engine);
  await print(renderFindings(findings));
  return findings.some(({ state }) => state === "problem") ? 69 : 0;
}

function describeHost(): Host {
  const { env } = process;
  const home = homedir();
  requireHome(home);
  return {
    env,
    cwd: readWorkingDirectory(),
    home,
    agentboxHome: findAgentboxHome(home),
    root,
    user: { uid: process.getuid?.() ?? 1000, gid: process.getgid?.() ?? 1000 },
    terminal: isatty(0) && isatty(1),
  };
}

function readWorkingDirectory(): string {
  try {
    return process.cwd();
  } catch (error) {
    throw new UsageError({ what: "the working directory does not exist any more", expected: "a project directory", fix: "change to one (cd) and start again" }, { cause: error });
  }
}

async function show(host: Host): Promise<Screen> {
  return await openScreen(chooseStyle(host.env, host.terminal), host.env, (line) => process.stderr.write(`${line}\n`));
}

function explain(error: unknown): number {
  if (error instanceof KnownError) {
    for (const complaint of error.complaints) process.stderr.write(`agentbox: ${escapeUnseen(renderComplaint(complaint))}\n`);
    return error.exitCode;
  }
  // The screen has said why.
  if (error instanceof LaunchFailure) return error.exitCode;
  if (error instanceof Interrupted) {
    process.stderr.write(`agentbox: ${error.message}; everything was removed\n`);
    return error.exitCode;
  }
  process.stderr.write(`agentbox: this is a bug, please report it:\n${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return 70;
}

/** Paths that are wrong are mistakes of the command line, and told together with the others. */
function checkPath(kind: "directory" | "file", typed: string): Complaint | undefined {
  try {
    const found = statSync(typed);
    const fits = kind === "directory" ? found.isDirectory() : found.isFile();
    return fits ? undefined : { what: `${JSON.stringify(typed)} is not a ${kind}`, expected: `a ${kind}` };
  } catch (error) {
    const missing = error instanceof Error && "code" in error && error.code === "ENOENT";
    return { what: `${JSON.stringify(typed)} ${missing ? "does not exist" : "cannot be read"}`, expected: `a ${kind}` };
  }
}

function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
  return typeof manifest === "object" && manifest !== null && "version" in manifest ? String(manifest.version) : "unknown";
}

/** A reader that went away has read all that it wanted; anything else that fails has lost what was asked for. */
async function print(text: string): Promise<void> {
  const failure = await new Promise<(Error & { code?: string }) | null | undefined>((resolve) => process.stdout.write(text, resolve));
  if (failure === null || failure === undefined || failure.code === "EPIPE" || failure.code === "EIO") return;
  throw new OutputError({ what: `stdout cannot be written (${failure.code ?? failure.message})`, expected: "a file or a disk that takes the output", fix: "free space, or send the output elsewhere" }, { cause: failure });
}

// A terminal that was closed, or a reader that went away, must not stop the tidying up: what nobody sees is not said.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
if (isUsableHome(homedir())) enableCompileCache(path.join(homedir(), ".cache", "agentbox", "compile"));
process.exitCode = await main(process.argv.slice(2));
