import { GuardError } from "./errors.ts";

/** What a session may write in all; what is left out is unlimited. */
export type QuotaLimits = { bytes?: number | undefined; files?: number | undefined };
export type QuotaUse = { bytes: number; files: number };

/** Counts what sessions write, before it is written. Replacing a file counts as writing it. */
export class Quota {
  readonly #limits: (sessionId: string) => QuotaLimits;
  readonly #used = new Map<string, QuotaUse>();

  constructor(limits: (sessionId: string) => QuotaLimits = () => ({})) {
    this.#limits = limits;
  }

  /** Takes bytes and files from what is left. Throws GuardError `quota`, and takes nothing then. */
  take(sessionId: string, { bytes, files }: QuotaUse): void {
    const used = this.usedBy(sessionId);
    const limits = this.#limits(sessionId);
    judge("bytes", used.bytes + bytes, limits.bytes);
    judge("files", used.files + files, limits.files);
    this.#used.set(sessionId, { bytes: used.bytes + bytes, files: used.files + files });
  }

  /** Gives back what was taken for a write of which nothing remained. */
  giveBack(sessionId: string, { bytes, files }: QuotaUse): void {
    const used = this.usedBy(sessionId);
    this.#used.set(sessionId, { bytes: used.bytes - bytes, files: used.files - files });
  }

  usedBy(sessionId: string): QuotaUse {
    return this.#used.get(sessionId) ?? { bytes: 0, files: 0 };
  }

  endSession(sessionId: string): void {
    this.#used.delete(sessionId);
  }
}

function judge(unit: "bytes" | "files", wanted: number, limit: number | undefined): void {
  if (limit === undefined || wanted <= limit) return;
  throw new GuardError("quota", `quota:${unit}`, {
    what: `the session would have written ${wanted} ${unit}`,
    expected: `at most ${limit} ${unit} a session`,
    fix: "write less, or raise the session's quota",
  });
}
