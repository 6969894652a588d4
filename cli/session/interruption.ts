/** The command line was told to end. Nothing failed; everything is tidied up and the code says which signal it was. */
export class Interrupted extends Error {
  readonly exitCode: number;
  readonly cause: EndSignal;

  constructor(cause: EndSignal) {
    super(`ended by ${cause}`);
    this.name = "Interrupted";
    this.cause = cause;
    this.exitCode = 128 + endSignals[cause];
  }
}

const endSignals = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
export type EndSignal = keyof typeof endSignals;

/** Ends what a start is doing: `first` with the first signal, `second` when one more comes and patience is over. */
export type Interruption = { first: AbortSignal; second: AbortSignal; close: () => void };

/** Listens for the signals that end a command line. The aborts carry an `Interrupted` as their reason. */
export function listenForSignals(): Interruption {
  const first = new AbortController();
  const second = new AbortController();
  const listener = (signal: NodeJS.Signals): void => {
    if (signal !== "SIGHUP" && signal !== "SIGINT" && signal !== "SIGTERM") return;
    if (first.signal.aborted) second.abort(new Interrupted(signal));
    else first.abort(new Interrupted(signal));
  };
  const names: EndSignal[] = ["SIGHUP", "SIGINT", "SIGTERM"];
  for (const name of names) process.on(name, listener);
  return {
    first: first.signal,
    second: second.signal,
    close: () => {
      for (const name of names) process.off(name, listener);
    },
  };
}
