import type { BootEvent } from "../../policy/boot-event.ts";

/** Takes the events of a start, those of the command line and those of the box alike. */
export type Report = (event: BootEvent) => void;

/** Runs one named step and reports its begin and end; the step returns its value and a word about it. */
export async function reportStep<T>(report: Report, step: string, action: () => Promise<[T, string]>): Promise<T> {
  const started = performance.now();
  report({ event: "start", step });
  const [value, detail] = await action();
  report({ event: "done", step, ms: Math.round(performance.now() - started), detail });
  return value;
}
