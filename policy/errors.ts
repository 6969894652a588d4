/**
 * The few ways a run can fail that are not bugs. Each class means one thing the user should do;
 * `main.ts` of a program prints the message and exits with `exitCode`. Anything else that is thrown
 * is a bug and keeps its stack.
 */

/** Where a mistake stands: a file (or "command line"), and line and column where they are known, both from 1. */
export type Place = { file: string; line?: number | undefined; column?: number | undefined };

/** What every known failure tells: what failed, what was expected, and the fix, each one sentence. */
export type Complaint = {
  what: string;
  expected?: string | undefined;
  fix?: string | undefined;
  place?: Place | undefined;
  /** The line of the file with a caret under the mistake, as `renderExcerpt` makes it; shown below the message. */
  excerpt?: string | undefined;
};

/** Renders a complaint as one line, `file:line:column: what; expected …; fix: …`, and its excerpt below where it has one. */
export function renderComplaint({ what, expected, fix, place, excerpt }: Complaint): string {
  const where = place === undefined ? "" : `${renderPlace(place)}: `;
  const tail = [expected === undefined ? "" : `; expected ${expected}`, fix === undefined ? "" : `; fix: ${fix}`];
  return `${where}${what}${tail.join("")}${excerpt === undefined ? "" : `\n${excerpt}`}`;
}

/** Renders `file`, `file:line` or `file:line:column`. */
export function renderPlace({ file, line, column }: Place): string {
  return [file, line, column].filter((part) => part !== undefined).join(":");
}

/** A failure that the user can act on. `complaints` holds every mistake found, not only the first. */
export abstract class KnownError extends Error {
  abstract readonly exitCode: number;
  readonly complaints: readonly Complaint[];

  constructor(complaints: Complaint | readonly Complaint[], options?: ErrorOptions) {
    const list = "what" in complaints ? [complaints] : complaints;
    super(list.map(renderComplaint).join("\n"), options);
    this.complaints = list;
    this.name = new.target.name;
  }
}

/** The command line is wrong: read the message, type it again. */
export class UsageError extends KnownError {
  readonly exitCode = 64;
}

/** A file the user wrote is wrong: edit it at the place named. */
export class ConfigError extends KnownError {
  readonly exitCode = 78;
}

/** A name that must resolve or answer does not: check the network or the list. */
export class ResolveError extends KnownError {
  readonly exitCode = 69;
}

/** The container engine is missing, refuses or does not answer: see to the engine. */
export class EngineError extends KnownError {
  readonly exitCode = 69;
}

/** The firewall could not be applied or verified; nothing was started. */
export class FirewallError extends KnownError {
  readonly exitCode = 70;
}

/** The kernel or the engine withholds a capability that the firewall needs. */
export class CapabilityError extends KnownError {
  readonly exitCode = 77;
}

/** What was asked for cannot be written where it was asked to go: see to the disk. */
export class OutputError extends KnownError {
  readonly exitCode = 74;
}

/** Runs one reader of several; its mistakes join those of the others, so that a user sees all of them at once. */
export function collectComplaints<T>(complaints: Complaint[], read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    complaints.push(...error.complaints);
    return undefined;
  }
}
