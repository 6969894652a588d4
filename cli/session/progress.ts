import { open } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { type BootEvent, bootEventSchema } from "../../policy/boot-event.ts";
import { FirewallError } from "../../policy/errors.ts";

/** Change notices do not cross into the virtual machine of a desktop engine, so the file is read again and again. */
const pollMs = 15;

export type Progress = {
  file: string;
  report: (event: BootEvent) => void;
  /** Ends the reading early; what was written until then is still reported. */
  signal: AbortSignal;
};

/** Reads boot events until the box is ready or has failed, and returns the last event; undefined when `signal` came first. */
export async function followProgress({ file, report, signal }: Progress): Promise<BootEvent | undefined> {
  let pending = Buffer.alloc(0);
  let offset = 0;
  for (;;) {
    const last = signal.aborted;
    const added = await readFrom(file, offset);
    offset += added.length;
    pending = Buffer.concat([pending, added]);
    const end = pending.lastIndexOf("\n") + 1;
    const lines = pending.subarray(0, end).toString("utf8").split("\n").slice(0, -1);
    pending = pending.subarray(end);
    for (const line of lines) {
      const event = parseLine(line);
      report(event);
      if (event.event === "ready" || event.event === "failed") return event;
    }
    if (last) return undefined;
    await sleep(pollMs, undefined, { signal }).catch(() => undefined);
  }
}

async function readFrom(file: string, offset: number): Promise<Buffer> {
  const handle = await open(file, "r").catch(() => undefined);
  if (handle === undefined) return Buffer.alloc(0);
  try {
    const { size } = await handle.stat();
    const buffer = Buffer.alloc(Math.max(0, size - offset));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, offset);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

function parseLine(line: string): BootEvent {
  try {
    return bootEventSchema.parse(JSON.parse(line));
  } catch {
    throw new FirewallError({ what: `the box reported something unreadable: ${line.slice(0, 120)}`, expected: "a boot event", fix: "run `agentbox --rebuild`: image and command line differ" });
  }
}
