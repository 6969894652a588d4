import type { Complaint, Place } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";

/** Longest "NAME=VALUE" that Linux passes to a program (MAX_ARG_STRLEN, its NUL included). */
const MAX_BYTES = 131_071;
/** All variables together; the kernel's limit is a quarter of the stack, 2 MiB, shared with the arguments. */
const MAX_TOTAL_BYTES = 1_000_000;

export type Variable = { name: string; value: string };

/** Says what is wrong with a variable, without its value: it may be a secret. */
export function checkVariable({ name, value }: Variable, place?: Place): Complaint | null {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
    const fix = /^[A-Za-z_][\w.-]*$/.test(name) ? `write ${name.replaceAll(/\W/g, "_")}` : "correct the name";
    return { what: `${quotePath(name)} is no name of a variable`, expected: "letters, digits and _, not beginning with a digit", fix, place };
  }
  if (value.includes("\0")) return { what: `the value of ${name} holds a NUL byte`, expected: "text", fix: "pass it in a file", place };
  if (Buffer.byteLength(`${name}=${value}`) > MAX_BYTES) {
    return { what: `the value of ${name} is longer than Linux allows`, expected: `at most ${MAX_BYTES} bytes`, fix: "pass it in a file", place };
  }
  return null;
}

/** Says when all variables together are more than a program can be started with. */
export function checkTotal(env: Readonly<Record<string, string>>): Complaint | null {
  const bytes = Object.entries(env).reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value) + 2, 0);
  if (bytes <= MAX_TOTAL_BYTES) return null;
  return { what: `the variables for the agent take ${bytes} bytes`, expected: `at most ${MAX_TOTAL_BYTES}`, fix: "shorten .env, or pass large values in files" };
}

/** Variables that steer AgentBox itself, which only the caller's own environment may do. */
export function isReserved(name: string): boolean {
  return name.toUpperCase().startsWith("AGENTBOX_");
}
