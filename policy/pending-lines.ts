/**
 * The two files beside a decision log that hold in turns what is counted and not yet a line. A write that is cut short by the end
 * of its process spoils one of them, and the other has what was there a moment before.
 *
 * A file is `TURN COUNT`, that many lines, and `TURN` again; what follows is left from a longer turn. The turn at the end was
 * written last, so that a file which has both is whole.
 */
export const PENDING_FILES = ["decisions.pending.1", "decisions.pending.2"] as const;

export function renderPending(turn: number, lines: readonly string[]): string {
  return [`${turn} ${lines.length}`, ...lines, String(turn), ""].join("\n");
}

/** The lines of the newest of the files that is whole; none where there is none. */
export function readPending(texts: readonly string[]): string[] {
  const whole = texts.flatMap((text) => parsePending(text) ?? []);
  return whole.toSorted((a, b) => b.turn - a.turn)[0]?.lines ?? [];
}

function parsePending(text: string): { turn: number; lines: string[] } | undefined {
  const [head = "", ...rest] = text.split("\n");
  const { turn, count } = /^(?<turn>[0-9]{1,15}) (?<count>[0-9]{1,6})$/.exec(head)?.groups ?? {};
  if (turn === undefined || rest[Number(count)] !== turn) return undefined;
  return { turn: Number(turn), lines: rest.slice(0, Number(count)) };
}
