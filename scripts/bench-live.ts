import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { execa } from "execa";
import { findAgentProfile } from "../policy/agent-profile.ts";
import { ENFORCEMENTS } from "../policy/config-schema.ts";
import { UsageError } from "../policy/errors.ts";
import type { ControlRequest } from "../policy/keeper-message.ts";
import { describeAgent } from "../cli/commands/project-policy.ts";
import { findLiveBoxes, type LiveBox } from "../cli/config/live-change.ts";
import { readConfig } from "../cli/config/read-config.ts";
import type { Host } from "../cli/host.ts";
import { sendControl } from "../cli/session/control.ts";
import { findAgentboxHome } from "../cli/session/home.ts";
import { prepareTestImage } from "../test/image/test-image.ts";
import { type DockerLab, startDockerLab } from "../test/lab/docker.ts";
import { syntheticName } from "../test/lab/zone.ts";
import { runScript } from "./edge.ts";
import { type Case, measureInterleaved, renderTable, summarize, type Summary } from "./measure.ts";

/**
 * Measures how long a change of the policy takes until it is in force in a box that runs, for configurations of
 * different length: the whole command, an edit of the file, and the box's own part of it. One box for each
 * length, whose internet is the lab; the names of the rules exist there and were resolved at its start.
 */
const SIZES = [10, 1000, 10_000];
const MIN_ROUNDS = 5;
const START_LIMIT_MS = 180_000;
const CHANGE_LIMIT_MS = 30_000;
const ROOT = join(import.meta.dirname, "..");
const AGENTBOX = join(ROOT, "agentbox");
/** What runs in the boxes: says that it does, and stays until they are ended. */
const STAY = "touch up; while :; do sleep 1; done";

type Options = { rounds: number; json: string; sizes: readonly number[]; enforcement: Enforcement };
type Enforcement = (typeof ENFORCEMENTS)[number];

async function main(argv: readonly string[]): Promise<void> {
  const options = readOptions(argv);
  const { image, caFile } = await prepareTestImage({ agents: ["none"] });
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "agentbox-bench-")));
  const commands: ChildProcess[] = [];
  try {
    await using lab = await startDockerLab({ image });
    try {
      const boxes: Box[] = [];
      for (const size of options.sizes) boxes.push(await startBox({ directory, lab, caFile, size, enforcement: options.enforcement, commands }));
      const samples = await measureInterleaved(boxes.flatMap(makeCases), options.rounds);
      report(options, new Map([...samples].map(([name, values]) => [name, summarize(values)])));
    } finally {
      await Promise.all(commands.map(endCommand));
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function readOptions(argv: readonly string[]): Options {
  const options = {
    rounds: { type: "string", default: "9" },
    sizes: { type: "string", default: SIZES.join(",") },
    enforcement: { type: "string", default: "name" },
    json: { type: "string", default: join(ROOT, "build/bench-live.json") },
  } as const;
  const { values } = parseArgs({ args: [...argv], options });
  const rounds = Number(values.rounds);
  const enforcement = ENFORCEMENTS.find((known) => known === values.enforcement);
  if (enforcement === undefined) throw new UsageError({ what: `--enforcement ${values.enforcement} is not known`, expected: ENFORCEMENTS.join(" or ") });
  if (Number.isInteger(rounds) && rounds >= MIN_ROUNDS) return { rounds, enforcement, json: values.json, sizes: values.sizes.split(",").map(Number) };
  throw new UsageError({ what: `--rounds ${values.rounds} is too few, or no number`, expected: `a whole number from ${MIN_ROUNDS} on`, fix: `write --rounds ${MIN_ROUNDS}` });
}

type Box = { size: number; enforcement: Enforcement; host: Host; project: string; config: string; live: LiveBox; changes: { next: number } };

type BoxInput = Pick<Box, "size" | "enforcement"> & { directory: string; lab: DockerLab; caFile: string; commands: ChildProcess[] };

/** Each box has a home and a project of its own, so that one command line never waits for another's lock. */
async function startBox({ directory, lab, caFile, size, enforcement, commands }: BoxInput): Promise<Box> {
  const home = join(directory, `home-${size}`);
  const project = join(directory, `project-${size}`);
  const config = join(project, ".agentbox/config.toml");
  for (const made of [home, dirname(config)]) mkdirSync(made, { recursive: true });
  const host: Host = { env: { ...process.env, HOME: home, AGENTBOX_FIREWALL: "1" }, cwd: project, home, agentboxHome: findAgentboxHome(home), root: ROOT, user: { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }, terminal: false };
  writeFileSync(config, renderConfig({ size, enforcement }, []));
  await run(host, ["policy", "trust"]);
  const argv = ["run", "--agents", "none", "--ca-file", caFile, "--network", lab.network, "--dns", lab.dns, "--", "sh", "-c", STAY];
  const started = spawn(AGENTBOX, argv, { cwd: project, env: host.env, stdio: ["ignore", "ignore", "inherit"] });
  commands.push(started);
  await until(`a box with ${size} rules`, START_LIMIT_MS, () => existsSync(join(project, "up")) || started.exitCode !== null);
  const [live] = await findLiveBoxes(host, project, undefined);
  if (live === undefined) throw new Error(`the box with ${size} rules did not start`);
  return { size, enforcement, host, project, config, live, changes: { next: 0 } };
}

async function endCommand(command: ChildProcess): Promise<void> {
  if (command.exitCode !== null) return;
  command.kill("SIGTERM");
  await once(command, "exit");
}

/** Rules in the order in which people write them: names, every third with all below it, every tenth denied. */
function renderConfig({ size, enforcement }: Pick<Box, "size" | "enforcement">, blocks: readonly string[]): string {
  const rules = Array.from({ length: size }, (_, index) => {
    const name = syntheticName(index + 1);
    return `[[network.rules]]\ndomain = "${index % 3 === 0 ? "**." : ""}${name}"\naction = "${index % 10 === 9 ? "deny" : "allow"}"\n`;
  });
  return `[network]\nenforcement = "${enforcement}"\nblock_hosts = [${blocks.map((word) => JSON.stringify(word)).join(", ")}]\n\n${rules.join("\n")}`;
}

function makeCases(box: Box): Case[] {
  const label = `${box.size.toLocaleString("en")} rules`;
  return [
    { name: `policy allow --session, ${label}`, run: () => time(() => run(box.host, ["policy", "allow", "--session", nextName(box)])) },
    { name: `edit of the file, ${label}`, run: () => timeEdit(box) },
    { name: `box's own part, ${label}`, run: () => timeReplace(box) },
    { name: `way into the box, ${label}`, run: () => time(() => ask(box, { op: "status" })) },
  ];
}

/** A name that no change has named yet. */
function nextName({ changes, size }: Box): string {
  changes.next += 1;
  return `change${changes.next}.of${size}.example.org`;
}

/** From the moment at which the file is written until the box says that it enforces what stands there. A block more needs no trust. */
async function timeEdit(box: Box): Promise<number> {
  const blocked = nextName(box);
  const told = join(box.live.visible, "policy.json");
  const isBlocked = (): boolean => readFileSync(told, "utf8").includes(blocked);
  const edited = renderConfig(box, [blocked]);
  const sample = await time(async () => {
    writeFileSync(box.config, edited);
    await until(`a box that blocks ${blocked}`, CHANGE_LIMIT_MS, isBlocked);
  });
  // The other cases begin with what was agreed to, and with nothing under way.
  writeFileSync(box.config, renderConfig(box, []));
  await until(`a box that does not block ${blocked} any more`, CHANGE_LIMIT_MS, () => !isBlocked());
  return sample;
}

/** The same request as the command line sends, with a name that is new, and without the command line. */
async function timeReplace(box: Box): Promise<number> {
  const config = await readConfig({ host: box.host, projectPath: box.project });
  const document = config.document(describeAgent(findAgentProfile(box.live.record.agent)), { allow: [{ text: nextName(box) }], deny: [] });
  return await time(() => ask(box, { op: "replace", document }));
}

async function ask({ live }: Box, request: ControlRequest): Promise<void> {
  const reply = await sendControl(live.engine, live, request);
  if (!reply.ok) throw new Error(`the box refused: ${reply.complaints[0]?.what ?? ""}`);
}

async function run({ env, cwd }: Host, argv: readonly string[]): Promise<void> {
  await execa(AGENTBOX, argv, { cwd, env, stdin: "ignore" });
}

async function time(action: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await action();
  return performance.now() - started;
}

async function until(what: string, limitMs: number, look: () => boolean): Promise<void> {
  const end = performance.now() + limitMs;
  while (!look()) {
    if (performance.now() > end) throw new Error(`waited in vain for ${what}`);
    await sleep(5);
  }
}

function report({ rounds, enforcement, json }: Options, summaries: ReadonlyMap<string, Summary>): void {
  const rows = [...summaries].map(([name, { min, q1, median, q3, max }]) => [name, ...[median, q1, q3, min, max].map((ms) => ms.toFixed(0))]);
  process.stdout.write(`${renderTable([["case", "median ms", "q1", "q3", "min", "max"], ...rows])}\n`);
  mkdirSync(dirname(json), { recursive: true });
  const document = { benchmark: "live", node: process.version, cpu: cpus()[0]?.model ?? "unknown", rounds, enforcement, cases: Object.fromEntries(summaries) };
  writeFileSync(json, `${JSON.stringify(document, undefined, 2)}\n`);
}

await runScript(() => main(process.argv.slice(2)));
