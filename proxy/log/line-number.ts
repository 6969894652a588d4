import { z } from "zod";

/** What the log reads back of its own lines. */
const numbered = z.looseObject({ seq: z.int().min(0), session: z.string() });

/** The number after the last line of this session; a line that nobody can read counts for nothing. */
export function nextSeq(line: string | undefined, session: string): number {
  const last = readNumbered(line);
  return last?.session === session ? last.seq + 1 : 0;
}

/** Reads a line with its number and session; undefined for what is none. */
export function readNumbered(line: string | undefined): z.infer<typeof numbered> | undefined {
  try {
    return line === undefined ? undefined : numbered.safeParse(JSON.parse(line)).data;
  } catch {
    // The host's side may write anything into its own directory.
    return undefined;
  }
}
