import { type Complaint, KnownError } from "../policy/errors.ts";
import { quotePath } from "../policy/parsed.ts";

/** Why the guard refused, as one word that programs can compare; it stands in the audit log and in every answer. */
export const REFUSALS = [
  /** The path lies in no granted root of the session, or leads out of it. */
  "outside-roots",
  /** A root holds it, but its grant does not give this intent, or has expired. */
  "not-granted",
  /** A hidden or system path, and the grant does not name it. */
  "hidden",
  /** The path is malformed: empty, too long, NUL, not well-formed Unicode. */
  "malformed-path",
  /** A component is a symbolic link that leads elsewhere, or was exchanged while it was looked at. */
  "link",
  /** The file has further names (hard links), which may lie outside the root. */
  "hard-link",
  /** A device, FIFO, socket or directory where a regular file is needed. */
  "special-file",
  /** Source and destination lie in different roots. */
  "cross-root",
  /** A rule of the policy denies it. */
  "rule",
  /** A human said no. */
  "declined",
  /** Nobody answered in time, or nobody can be asked. */
  "unanswered",
  /** More bytes or files than the session may write. */
  "quota",
  /** The audit log cannot be written, so nothing may happen. */
  "audit",
  /** The session is not known or has ended. */
  "no-session",
] as const;
export type Refusal = (typeof REFUSALS)[number];

/** An operation that the guard refused; nothing was read or changed. */
export class GuardError extends KnownError {
  readonly exitCode = 77;
  readonly refusal: Refusal;
  /** The rule, invariant or grant that decided. */
  readonly rule: string;

  constructor(refusal: Refusal, rule: string, complaint: Complaint, options?: ErrorOptions) {
    super(complaint, options);
    this.refusal = refusal;
    this.rule = rule;
  }
}

/** An operation that was allowed, and which the file system refused or could not finish; `code` is the kernel's word (ENOENT, ENOSPC, …). */
export class FileError extends KnownError {
  readonly exitCode = 74;
  readonly code: string;

  constructor(code: string, complaint: Complaint, options?: ErrorOptions) {
    super(complaint, options);
    this.code = code;
  }
}

/** Turns the kernel's refusal of an allowed operation into a FileError; what is known already, and bugs, stay what they are. */
export function asFileError(error: unknown, path: string): unknown {
  if (error instanceof KnownError || !(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return error;
  if (!/^E[A-Z0-9]+$/.test(error.code)) return error;
  return new FileError(error.code, { what: `${quotePath(path)}: ${WORDS[error.code] ?? error.code}` }, { cause: error });
}

const WORDS: Readonly<Record<string, string>> = {
  EACCES: "the system denies access",
  EDQUOT: "the disk quota is used up",
  EEXIST: "exists already",
  EISDIR: "is a directory",
  ENOENT: "does not exist",
  ENOSPC: "no space is left on the device",
  ENOTDIR: "is not a directory, or something on the way is not",
  ENOTEMPTY: "the directory is not empty",
  EPERM: "the system does not permit it",
  EROFS: "the file system is read-only",
  EXDEV: "lies on another file system",
};
