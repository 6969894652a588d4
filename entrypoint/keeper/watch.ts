/** Waits for changes of a state that somebody else tells of. */
export class Watch {
  private readonly watchers = new Set<() => void>();

  /** The state has changed: everybody looks again. */
  notify(): void {
    for (const watcher of this.watchers) watcher();
  }

  /** Looks now and after each change, until there is something to see; undefined after `limitMs`. */
  until<T>(limitMs: number, look: () => T | undefined): Promise<T | undefined> {
    return new Promise((resolve) => {
      const finish = (value: T | undefined): void => {
        clearTimeout(timer);
        this.watchers.delete(watcher);
        resolve(value);
      };
      const watcher = (): void => {
        const value = look();
        if (value !== undefined) finish(value);
      };
      const timer = setTimeout(() => finish(undefined), limitMs);
      this.watchers.add(watcher);
      watcher();
    });
  }
}
