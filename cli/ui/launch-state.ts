import type { BootEvent } from "../../policy/boot-event.ts";

export type StepState = {
  name: string;
  status: "running" | "done" | "failed";
  /** How far a running step is, or a word about one that ended. */
  text: string;
};

/** What the launch screen shows. */
export type LaunchState = {
  steps: readonly StepState[];
  warnings: readonly string[];
  failure: string | undefined;
  ready: string | undefined;
};

export const emptyLaunch: LaunchState = { steps: [], warnings: [], failure: undefined, ready: undefined };

/** Returns the state after an event. */
export function applyEvent(state: LaunchState, event: BootEvent): LaunchState {
  switch (event.event) {
    case "start":
      return withStep(state, { name: event.step, status: "running", text: "" });
    case "progress":
      return withStep(state, { name: event.step, status: "running", text: `${event.done} of ${event.total}` });
    case "done":
      return withStep(state, { name: event.step, status: "done", text: `${event.detail} (${event.ms} ms)` });
    case "warning":
      return { ...state, warnings: [...state.warnings, event.step === "" ? event.text : `${event.step}: ${event.text}`] };
    case "failed":
      return { ...withStep(state, { name: event.step, status: "failed", text: "" }), failure: event.text };
    case "ready":
      return { ...state, ready: `${event.text} (${event.ms} ms)` };
  }
}

function withStep(state: LaunchState, step: StepState): LaunchState {
  const known = state.steps.some(({ name }) => name === step.name);
  const steps = known ? state.steps.map((present) => (present.name === step.name ? step : present)) : [...state.steps, step];
  return { ...state, steps };
}
