import { nameSets } from "../../firewall/rule.ts";

/** How to talk to a program that changes sets line by line for as long as it lives. */
export type SetDialect = {
  argv: readonly string[];
  /** A line that changes nothing and is answered by one line that matches `acknowledgement`. */
  probe: string;
  acknowledgement: RegExp;
  /** Says what went wrong by a line of the answer and the one before it; undefined where a line tells of nothing. */
  complain: (line: string, before: string) => string | undefined;
};

// A documentation address (RFC 5737): nobody's, and asking for it changes nothing.
const SENTINEL = "192.0.2.1,tcp:9";

export const SET_DIALECTS: Readonly<Record<"ipset" | "nft", SetDialect>> = {
  ipset: {
    argv: ["ipset", "-exist", "-"],
    probe: `test ${nameSets(4).cut} ${SENTINEL}`,
    acknowledgement: /192\.0\.2\.1,tcp:9 is (?:NOT )?in set /,
    complain: (line) => line.trim() || undefined,
  },
  // Any question about what the kernel holds makes nft read all of it; this one it answers by itself.
  nft: { argv: ["nft", "-i"], probe: "describe ip ttl", acknowledgement: /^payload expression, /, complain: complainOfNft },
};

/** Tells whether a complaint says that a set has no room. */
export function saysFull(complaint: string): boolean {
  return /\bfull\b/i.test(complaint);
}

const NFT_ERROR = "Error: ";
// What the kernel says of an element that is not there, and of a set without room (ENOENT, ENFILE).
const NFT_ABSENT = "Error: Could not process rule: No such file or directory";
const NFT_FULL = "Error: Could not process rule: Too many open files in system";
/** The line that points at a mistake. */
const NFT_POINTER = /^[ ^~]+$/;

/** nft tells of an error in three lines: what, the command, and where in it. */
function complainOfNft(line: string, before: string): string | undefined {
  if (before.startsWith(NFT_ERROR)) return judgeNftError(before, line);
  return line.startsWith(NFT_ERROR) || NFT_POINTER.test(line) ? undefined : line.trim() || undefined;
}

function judgeNftError(error: string, command: string): string | undefined {
  // Its life was over a moment before it could be taken out. Where others were to go with it, they are still there.
  if (error === NFT_ABSENT && /^delete element [^,;]+$/.test(command)) return undefined;
  if (error === NFT_FULL) return `the set is full: ${command.split(" ").slice(0, 5).join(" ")}`;
  return error;
}
