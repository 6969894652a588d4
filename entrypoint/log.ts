import { writeSync } from "node:fs";
import type { BootEvent } from "../policy/boot-event.ts";
import { escapeUnseen } from "../policy/parsed.ts";

export type Log = (event: BootEvent) => void;

// Writing is synchronous on purpose: Node's streams would leave the agent with non-blocking descriptors.

/** One JSON line an event on descriptor `fd`. */
export function writeJsonLines(fd: number): Log {
  return (event) => writeAll(fd, `${escapeUnseen(JSON.stringify(event))}\n`);
}

/** One plain line for each step that ended, each warning and the outcome, on descriptor `fd`. */
export function writePlainLines(fd: number): Log {
  return (event) => {
    const line = renderLine(event);
    if (line !== undefined) writeAll(fd, `agentbox: ${escapeUnseen(line)}\n`);
  };
}

function renderLine(event: BootEvent): string | undefined {
  switch (event.event) {
    case "start":
    case "progress":
      return undefined;
    case "done":
      return `${event.step}: ${event.detail} (${event.ms} ms)`;
    case "warning":
      return `warning: ${event.step}: ${event.text}`;
    case "failed":
      return `error: ${event.step}: ${event.text}`;
    case "ready":
      return `${event.text} (${event.ms} ms)`;
  }
}

// A terminal or a pipe that somebody set non-blocking may take only a part, or nothing for a moment.
function writeAll(fd: number, text: string): void {
  let rest = Buffer.from(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(fd, rest));
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}
