/** What a series of samples says: quartiles by linear interpolation, in the unit of the samples. */
export type Summary = { count: number; min: number; q1: number; median: number; q3: number; max: number };

/** One thing to measure; `run` does it once and returns the sample. */
export type Case = { name: string; run: () => number | Promise<number> };

/** Summarises samples; there must be at least one. */
export function summarize(samples: readonly number[]): Summary {
  if (samples.length === 0) throw new Error("nothing was measured");
  const sorted = samples.toSorted((a, b) => a - b);
  const at = (fraction: number): number => quantile(sorted, fraction);
  return { count: sorted.length, min: at(0), q1: at(0.25), median: at(0.5), q3: at(0.75), max: at(1) };
}

/**
 * Runs all cases once a round, in turns, so that a machine that slows down slows all of them down. The
 * first round warms up and is thrown away.
 */
export async function measureInterleaved(cases: readonly Case[], rounds: number): Promise<ReadonlyMap<string, readonly number[]>> {
  const samples = new Map<string, number[]>(cases.map(({ name }) => [name, []]));
  for (let round = 0; round <= rounds; round += 1) {
    // Every second round goes backwards: no case always follows the same one.
    const order = round % 2 === 0 ? cases : cases.toReversed();
    for (const { name, run } of order) {
      const sample = await run();
      if (round > 0) samples.get(name)?.push(sample);
    }
  }
  return samples;
}

/** Lays rows out as a text table; the first row is the head, the first column text, the others numbers. */
export function renderTable(rows: readonly (readonly string[])[]): string {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  const line = (row: readonly string[]): string =>
    widths.map((width, column) => (column === 0 ? (row[column] ?? "").padEnd(width) : (row[column] ?? "").padStart(width))).join("  ").trimEnd();
  const [head, ...body] = rows.map(line);
  return [head ?? "", widths.map((width) => "-".repeat(width)).join("  "), ...body].join("\n");
}

function quantile(sorted: readonly number[], fraction: number): number {
  const position = (sorted.length - 1) * fraction;
  const low = sorted[Math.floor(position)] ?? Number.NaN;
  const high = sorted[Math.ceil(position)] ?? Number.NaN;
  return low + (high - low) * (position - Math.floor(position));
}
