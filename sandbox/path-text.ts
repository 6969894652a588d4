import { GuardError } from "./errors.ts";

/** Linux's PATH_MAX less its terminating NUL, and NAME_MAX, in bytes. */
const PATH_BYTES = 4095;
const NAME_BYTES = 255;

/** A path as it was asked for, taken apart and nothing else: no `..` is resolved here, since what it means depends on links. */
type PathText = {
  /** Names between the slashes; empty ones and `.` are left out, `..` is kept. */
  components: readonly string[];
  /** True where the path ends in a slash or in `.`, so only a directory will do. */
  isDirectory: boolean;
};

/**
 * Takes an absolute path apart. Throws GuardError `malformed-path`. Nothing is decoded: `%2e%2e`, a backslash
 * and full-width dots are plain letters of a name for the kernel, and stay so here.
 */
export function parsePathText(path: string): PathText {
  const mistake = findMistake(path);
  if (mistake !== undefined) throw new GuardError("malformed-path", "path", { what: `the path ${mistake}`, expected: "an absolute path of at most 4095 bytes" });
  const written = path.split("/");
  const last = written.at(-1);
  return { components: written.filter((name) => name !== "" && name !== "."), isDirectory: last === "" || last === "." };
}

function findMistake(path: string): string | undefined {
  if (!path.startsWith("/")) return "is not absolute, and the session has no root to begin at";
  // The kernel's text ends at a NUL: what is judged and what is opened would differ.
  if (path.includes("\0")) return "contains a NUL";
  // Node turns a lone surrogate into U+FFFD, which is a name of its own.
  if (!path.isWellFormed()) return "is not well-formed Unicode";
  if (path.length > PATH_BYTES || Buffer.byteLength(path) > PATH_BYTES) return `is longer than ${PATH_BYTES} bytes`;
  if (path.length > NAME_BYTES / 4 && path.split("/").some((name) => Buffer.byteLength(name) > NAME_BYTES)) return `has a name of more than ${NAME_BYTES} bytes`;
  return undefined;
}
