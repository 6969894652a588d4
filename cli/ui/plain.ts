import type { BootEvent } from "../../policy/boot-event.ts";

/** Renders an event as one line, in the words of the entrypoint's own lines; undefined for what is not worth one. */
export function renderPlainLine(event: BootEvent): string | undefined {
  switch (event.event) {
    case "start":
      return undefined;
    case "progress":
      // Names are resolved within a moment; the steps of a build take minutes.
      return event.step === "image" ? `agentbox: image: step ${event.done} of ${event.total}` : undefined;
    case "done":
      return `agentbox: ${event.step}: ${event.detail} (${event.ms} ms)`;
    case "warning":
      return `agentbox: warning: ${event.step === "" ? "" : `${event.step}: `}${event.text}`;
    case "failed":
      return `agentbox: error: ${event.step}: ${event.text}`;
    case "ready":
      return `agentbox: ${event.text} (${event.ms} ms)`;
  }
}
