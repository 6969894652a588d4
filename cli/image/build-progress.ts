/** One step of a build as the builders print it. `number` and `total` count from 1. */
export type BuildStep = { number: number; total: number; text: string };

/** Classic builder: `Step 7/20 : RUN …`; Podman: `STEP 7/20: RUN …`; BuildKit: `#7 [3/9] RUN …` or `#7 [stage 3/9] RUN …`. */
const forms: readonly RegExp[] = [/^Step (\d+)\/(\d+) : (.*)$/, /^STEP (\d+)\/(\d+): (.*)$/, /^#\d+ \[(?:\S+ +)?(\d+)\/(\d+)\] (.*)$/];

/** Reads a line of a builder's output; undefined when it announces no step. */
export function parseBuildLine(line: string): BuildStep | undefined {
  for (const form of forms) {
    const [, number, total, text] = form.exec(line.trimEnd()) ?? [];
    if (text !== undefined) return { number: Number(number), total: Number(total), text };
  }
  return undefined;
}
