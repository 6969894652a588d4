import { join } from "node:path";
import { controlReplySchema, type ControlReply } from "../../../policy/keeper-message.ts";
import { KEEPER_IDS } from "../../../policy/reserved-ids.ts";
import type { Ids } from "../../../policy/privileges.ts";
import { type CommandResult, runCommand } from "../../lab/command.ts";
import type { NamespaceLab } from "../../lab/namespace.ts";
import { type BoxOptions, type BoxRun, runBox } from "./netns-box.ts";

/** A box that runs until the test has seen enough. */
export type HeldBox = {
  /** Runs a command in all namespaces of the box, without a capability: as its agent, unless told otherwise. */
  exec: (argv: readonly string[], ids?: Ids, input?: string) => Promise<CommandResult>;
  /** Asks the keeper as the command line does. */
  control: (request: unknown) => Promise<ControlReply>;
};

const CONTROL = join(import.meta.dirname, "../../../build/control.mjs");
const AGENT: Ids = { uid: 1000, gid: 1000 };

/** Starts a box, lets `look` at it once it is ready, ends it, and returns what it left. */
export async function holdBox(lab: NamespaceLab, options: BoxOptions, look: (box: HeldBox) => Promise<void>): Promise<BoxRun> {
  const marker = `hold-${process.pid}-${performance.now()}`;
  let outcome: Promise<void> | undefined;
  const run = await runBox(lab, {
    ...options,
    command: ["/bin/sh", "-c", "while :; do sleep 0.2; done", marker],
    onEvent: (event, kill) => {
      if (event.event !== "ready") return;
      outcome = enter(lab, marker)
        .then(look)
        .finally(() => kill("SIGKILL"));
      outcome.catch(() => undefined);
    },
  });
  if (outcome === undefined) throw new Error(`the box did not become ready:\n${run.stderr}`);
  await outcome;
  return run;
}

async function enter(lab: NamespaceLab, marker: string): Promise<HeldBox> {
  const pid = await findAgent(lab, marker);
  const exec: HeldBox["exec"] = (argv, { uid, gid } = AGENT, input = "") => {
    const become = ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs"];
    return runCommand(["nsenter", "-t", pid, "-m", "-n", "-p", ...become, ...argv], { input, env: { PATH: "/usr/bin:/bin:/usr/sbin" } });
  };
  const control: HeldBox["control"] = async (request) => {
    const { stdout, stderr } = await exec([process.execPath, CONTROL], KEEPER_IDS, JSON.stringify(request));
    if (stdout === "") throw new Error(stderr);
    return controlReplySchema.parse(JSON.parse(stdout));
  };
  return { exec, control };
}

async function findAgent(lab: NamespaceLab, marker: string): Promise<string> {
  for (;;) {
    const { stdout } = await runCommand(["ip", "netns", "pids", lab.boxNamespace]);
    for (const pid of stdout.trim().split("\n")) {
      const { stdout: line } = await runCommand(["ps", "-o", "args=", "-p", pid]);
      // The entrypoint bears the marker nowhere; the agent is the process that it has become.
      if (line.startsWith("/bin/sh -c while") && line.includes(marker)) return pid;
    }
  }
}

