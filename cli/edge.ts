import type { Host } from "./host.ts";

/** What a command that answers needs of the edge of the program: what it runs in, and where its words go. */
export type Edge = {
  host: Host;
  /** Writes a part of the answer to stdout, escaped as a terminal needs it. */
  print: (text: string) => Promise<void>;
  /** Tells the user something beside the answer, on stderr; one line each. */
  say: (line: string) => void;
};
