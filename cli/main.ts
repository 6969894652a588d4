import { readFileSync, statSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { homedir } from "node:os";
import path from "node:path";
import { isatty } from "node:tty";
import { AGENT_PROFILES } from "../policy/agent-profile-data.ts";
import { type Complaint, KnownError, renderComplaint } from "../policy/errors.ts";
import { type Command, parseCommandLine } from "./args.ts";
import { renderHelp } from "./args-help.ts";
import type { Host } from "./host.ts";
import { findAgentboxHome } from "./session/home.ts";
import { Interrupted } from "./session/interruption.ts";
import { LaunchFailure } from "./session/launch.ts";
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
      print(renderHelp(command.topic, agents, process.stdout.columns));
      return 0;
    case "version":
      print(`agentbox ${readVersion()}\n`);
      return 0;
    case "ssh-init":
      print(await (await import("./commands/ssh-init.ts")).initSsh(describeHost()));
      return 0;
    case "doctor":
      return await examineMachine(command);
    case "cleanup": {
      const lines = await (await import("./commands/cleanup.ts")).cleanUp(describeHost(), command.options.engine);
      print(`${lines.join("\n")}\n`);
      return 0;
    }
    case "rebuild": {
      const host = describeHost();
      // Nothing takes the terminal over afterwards, so only stdout decides.
      const screen = await show({ ...host, terminal: isatty(1) });
      const line = await (await import("./commands/rebuild.ts")).rebuild({ host, screen }, command);
      print(`${line}\n`);
      return 0;
    }
    case "start":
    case "login":
    case "shell":
    case "run":
      return await performBox(command);
  }
}

async function performBox(command: Extract<Command, { verb: "start" | "login" | "shell" | "run" }>): Promise<number> {
  const host = describeHost();
  const { requestBox } = await import("./commands/start.ts");
  const request = requestBox(command);
  if (command.options.dryRun) {
    const { dryRun } = await import("./commands/dry-run.ts");
    print(await dryRun(host, request, { report: () => {}, close: async () => {} }));
    return 0;
  }
  const { runBox } = await import("./session/run-box.ts");
  return await runBox({ host, screen: await show(host) }, request);
}

async function examineMachine({ options }: Extract<Command, { options: unknown }>): Promise<number> {
  const { examine, renderFindings } = await import("./commands/doctor.ts");
  const findings = await examine(describeHost(), options.engine);
  print(renderFindings(findings));
  return findings.some(({ state }) => state === "problem") ? 69 : 0;
}

function describeHost(): Host {
  const { env } = process;
  const home = homedir();
  return {
    env,
    cwd: process.cwd(),
    home,
    agentboxHome: findAgentboxHome(home),
    root,
    user: { uid: process.getuid?.() ?? 1000, gid: process.getgid?.() ?? 1000 },
    terminal: isatty(0) && isatty(1),
  };
}

async function show(host: Host): Promise<Screen> {
  return await openScreen(chooseStyle(host.env, host.terminal), host.env, (line) => process.stderr.write(`${line}\n`));
}

function explain(error: unknown): number {
  if (error instanceof KnownError) {
    for (const complaint of error.complaints) process.stderr.write(`agentbox: ${renderComplaint(complaint)}\n`);
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

function print(text: string): void {
  process.stdout.write(text);
}

// A terminal that was closed, or a reader that went away, must not stop the tidying up: what nobody sees is not said.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
enableCompileCache(path.join(homedir(), ".cache", "agentbox", "compile"));
process.exitCode = await main(process.argv.slice(2));
