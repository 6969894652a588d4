/** Lines of different hosts: so many at once, and so many a second from then on. */
const LIMITS = { allow: { burst: 30_000, perSecond: 1000 }, deny: { burst: 2000, perSecond: 100 } } as const;
const REPORT_MS = 10_000;

type Kind = keyof typeof LIMITS;
type Bucket = { tokens: number; at: number };

/**
 * Bounds the lines of the decision log, so that a program that asks for ever new names fills neither the
 * disk nor the time of the resolver. Refused and allowed names have budgets of their own: noise cannot
 * crowd out what was really reached.
 */
export class LineBudget {
  private readonly buckets: Record<Kind, Bucket> = { allow: { tokens: LIMITS.allow.burst, at: 0 }, deny: { tokens: LIMITS.deny.burst, at: 0 } };
  private dropped = 0;
  private reportedAt = 0;

  /** Takes one line out of the budget; false means that it has to be left out, which is counted. Times in Unix ms. */
  take(kind: Kind, now: number): boolean {
    const { burst, perSecond } = LIMITS[kind];
    const bucket = this.buckets[kind];
    bucket.tokens = Math.min(burst, bucket.tokens + (Math.max(0, now - bucket.at) * perSecond) / 1000);
    bucket.at = now;
    if (bucket.tokens < 1) {
      this.dropped += 1;
      return false;
    }
    bucket.tokens -= 1;
    return true;
  }

  /** Counts a line that was left out for another reason. */
  drop(): void {
    this.dropped += 1;
  }

  /** How many lines were left out since the last time this was more than 0; 0 also while it is too early to tell again. */
  takeDropped(now: number): number {
    if (this.dropped === 0 || now - this.reportedAt < REPORT_MS) return 0;
    const { dropped } = this;
    this.dropped = 0;
    this.reportedAt = now;
    return dropped;
  }
}
