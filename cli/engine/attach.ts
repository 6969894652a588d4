import { fstatSync } from "node:fs";
import { brokenPipeCode } from "./client.ts";
import type { Engine } from "./engine.ts";

/** An event that never comes (an engine without an event log) may delay the hand-over by this much, not stop it. */
const eventLimitMs = 1_500;

/** No key of a shell or an agent starts with this one, so none is held back by the engine's detach sequence. */
const detachKeys = "ctrl-^,ctrl-@,ctrl-^,ctrl-@";

/**
 * Joins the user's terminal to a running box until it ends, and calls `onAttached` once the engine
 * has the terminal and its size.
 */
export async function attachTerminal(engine: Engine, name: string, onAttached: () => Promise<void>): Promise<void> {
  const watcher = watchForAttach(engine, name);
  const session = engine.client.inherit(["attach", "--detach-keys", detachKeys, name], { signals: "group", stdin: true });
  // An attach that fails at once must not leave the box waiting either: it then ends by itself.
  await Promise.race([watcher.attached, session]);
  watcher.end();
  await onAttached();
  await session;
}

function watchForAttach(engine: Engine, name: string): { attached: Promise<void>; end: () => void } {
  // The client sends the terminal's size as the last step of attaching; Podman logs the attachment itself only.
  const action = engine.kind === "docker" ? "resize" : "attach";
  const events = engine.client.pipe(["events", "--filter", `container=${name}`, "--filter", `event=${action}`]);
  const attached = new Promise<void>((resolve) => {
    events.stdout.once("data", () => resolve());
    setTimeout(resolve, eventLimitMs).unref();
  });
  return { attached, end: events.end };
}

/** Runs a created box on the user's stdin, stdout and stderr, without a terminal, until it ends. */
export async function runAttached(engine: Engine, name: string, stdin: boolean): Promise<number | null> {
  const argv = ["start", "--attach", ...(stdin ? ["--interactive"] : []), name];
  return await engine.client.inherit(argv, { signals: "apart", stdin });
}

/**
 * Tells whether a client that left a running box did so because nobody reads the box's output any more.
 * Docker's then ends by itself with 1; there is no other way to ask a pipe for its readers.
 */
export function endedByReader(clientCode: number | null): boolean {
  if (clientCode === null) return false;
  return clientCode === brokenPipeCode || [1, 2].some(isPipe);
}

function isPipe(descriptor: number): boolean {
  try {
    const facts = fstatSync(descriptor);
    return facts.isFIFO() || facts.isSocket();
  } catch {
    return false;
  }
}
