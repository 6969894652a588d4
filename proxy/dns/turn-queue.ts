/** Lets a bounded number of tasks run at once and a bounded number wait for their turn. */
export class TurnQueue {
  private readonly running: number;
  private readonly waiting: number;
  private readonly queue: (() => void)[] = [];
  private active = 0;

  constructor(running: number, waiting: number) {
    this.running = running;
    this.waiting = waiting;
  }

  /** Runs the task when it is its turn; undefined means that too many are waiting. */
  async run<T>(task: () => Promise<T>): Promise<T | undefined> {
    if (this.active >= this.running) {
      if (this.queue.length >= this.waiting) return undefined;
      // Whoever ends hands its place over, so the count stays.
      await new Promise<void>((resolve) => this.queue.push(resolve));
    } else {
      this.active += 1;
    }
    try {
      return await task();
    } finally {
      const next = this.queue.shift();
      if (next === undefined) this.active -= 1;
      else next();
    }
  }
}
