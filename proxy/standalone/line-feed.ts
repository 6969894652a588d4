import type { WrittenLine } from "../log/decision-log.ts";

const MAX_REFUSALS = 200;

/** Hands the lines of the log to whoever listens, and keeps the newest refusals. */
export class LineFeed {
  private readonly listeners = new Set<(line: WrittenLine) => void>();
  private readonly refusals: WrittenLine[] = [];

  /** Takes a line that was written. */
  take(line: WrittenLine): void {
    if (line.entry.kind === "decision" && line.entry.action === "deny") {
      this.refusals.push(line);
      if (this.refusals.length > MAX_REFUSALS) this.refusals.shift();
    }
    for (const listener of this.listeners) listener(line);
  }

  /** Hands over every line from now on; returns how to stop. */
  listen(take: (line: WrittenLine) => void): () => void {
    this.listeners.add(take);
    return () => void this.listeners.delete(take);
  }

  /** The newest refusals with a number above `after`, the oldest first; asking takes none of them away. */
  recentRefusals(after: number): readonly WrittenLine[] {
    return this.refusals.filter(({ seq }) => seq > after);
  }
}
