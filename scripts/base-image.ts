import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { parseArgs } from "node:util";
import { EngineError, KnownError, UsageError } from "../policy/errors.ts";
import { runScript } from "./edge.ts";

/**
 * Makes an image that stands in for node:24-bookworm-slim where no image registry can be reached: Debian by
 * debootstrap, Node from this project's own dependency, npm from the npm registry.
 *
 * usage: scripts/base-image [--engine docker|podman] [--tag NAME] [--force]
 */
const SUITE = "bookworm";
const NPM_VERSION = "11.19.1";

/** What is told of a program's last words. */
const keptLines = 3;
const keptCharacters = 2_000;

function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      engine: { type: "string", default: "docker" },
      tag: { type: "string", default: "agentbox-base:local" },
      force: { type: "boolean", default: false },
    },
  });
  if (values.engine !== "docker" && values.engine !== "podman") {
    throw new UsageError({ what: `--engine ${values.engine}`, expected: "docker or podman" });
  }
  return makeBaseImage(values.engine, values.tag, values.force);
}

async function makeBaseImage(engine: "docker" | "podman", tag: string, force: boolean): Promise<void> {
  if (!force && imageExists(engine, tag)) return say(`${tag} is there already; --force makes it anew`);
  requireTools();
  const root = mkdtempSync(join(tmpdir(), "agentbox-base-"));
  try {
    const sources = readDebianSources();
    say(`Debian ${SUITE} by debootstrap`);
    const mirror = sources.find(({ release }) => release === SUITE)?.uri;
    await run("debootstrap", ["--variant=minbase", SUITE, root, ...(mirror === undefined ? [] : [mirror])]);
    if (sources.length > 0) {
      writeFileSync(join(root, "etc/apt/sources.list"), sources.map(({ uri, release }) => `deb ${uri} ${release} main\n`).join(""));
    }
    say("Node and npm");
    cpSync(process.execPath, join(root, "usr/local/bin/node"), { dereference: true });
    await run("npm", ["install", "--global", "--no-audit", "--no-fund", `--prefix=${root}/usr/local`, `npm@${NPM_VERSION}`]);
    rmSync(join(root, "var/cache/apt/archives"), { recursive: true, force: true });
    say(`import as ${tag}`);
    await importImage(engine, tag, root);
  } catch (error) {
    if (error instanceof KnownError || !(error instanceof Error && "syscall" in error)) throw error;
    throw new EngineError({ what: `${root} cannot be written: ${error.message}`, fix: "free space there, or set TMPDIR to another directory" }, { cause: error });
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

function imageExists(engine: string, tag: string): boolean {
  try {
    execFileSync(engine, ["image", "inspect", tag], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

function requireTools(): void {
  if (process.platform !== "linux" || process.getuid?.() !== 0) {
    throw new EngineError({
      what: "a base image can only be made by root on Linux",
      fix: "run as root, or make an image registry reachable and use --base IMAGE",
    });
  }
  try {
    execFileSync("debootstrap", ["--version"], { stdio: "ignore" });
  } catch (error) {
    throw new EngineError({ what: "debootstrap is not installed", fix: "apt-get install debootstrap" }, { cause: error });
  }
}

type Source = { uri: string; release: string };

/** The Debian archives that this machine itself uses for the suite; empty elsewhere than on Debian. */
function readDebianSources(): Source[] {
  let text: string;
  try {
    text = execFileSync("apt-get", ["indextargets", "--format", "$(ORIGIN)|$(CODENAME)|$(REPO_URI)|$(RELEASE)", "Created-By: Packages"], {
      encoding: "utf8",
    });
  } catch {
    return [];
  }
  const lines = new Set(text.split("\n").filter((line) => line.startsWith("Debian|") && line.split("|")[1]?.startsWith(SUITE)));
  return [...lines].map((line) => line.split("|")).flatMap(([, , uri, release]) => (uri && release ? [{ uri, release }] : []));
}

async function importImage(engine: string, tag: string, root: string): Promise<void> {
  const tar = spawn("tar", ["-C", root, "--numeric-owner", "-c", "."], { stdio: ["ignore", "pipe", "pipe"] });
  const load = spawn(engine, ["import", "--change", 'CMD ["/bin/bash"]', "-", tag], { stdio: ["pipe", "pipe", "pipe"] });
  // Whichever fails breaks the pipe between them too: the program's own words say why, the importer's first.
  const ends = await Promise.allSettled([waitFor(load), waitFor(tar), pipeline(tar.stdout, load.stdin)]);
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

async function run(file: string, argv: readonly string[]): Promise<void> {
  await waitFor(spawn(file, argv, { stdio: ["ignore", "pipe", "pipe"] }));
}

/** Waits for a program, passes its messages on, and throws EngineError that names it and its last words. */
async function waitFor(child: ChildProcess): Promise<void> {
  let said = "";
  for (const stream of child.spawnfile === "tar" ? [child.stderr] : [child.stdout, child.stderr]) {
    stream?.on("data", (chunk: Buffer) => {
      process.stderr.write(chunk);
      said = (said + chunk.toString()).slice(-keptCharacters);
    });
  }
  await new Promise<void>((resolve, reject) => {
    const fail = (how: string): void => reject(new EngineError({ what: `${child.spawnfile} ${how}` }));
    child.once("error", (error: NodeJS.ErrnoException) => fail(error.code === "ENOENT" ? "is not installed" : `cannot be started (${error.message})`));
    child.once("close", (code, signal) => {
      if (code === 0) resolve();
      else fail(`failed (${signal ?? `exit code ${code}`}): ${lastLines(said)}`);
    });
  });
}

/** The end of a program's messages as one line. */
function lastLines(text: string): string {
  const lines = text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  return lines.slice(-keptLines).join(" / ") || "it gave no reason";
}

function say(text: string): void {
  process.stderr.write(`base image: ${text}\n`);
}

await runScript(main);
