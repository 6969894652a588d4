import { z } from "zod";

/**
 * One line of the entrypoint's log with AGENTBOX_LOG=json, and of the launch screen's progress file.
 *
 * - `start`, `done`, `failed`: a named boot step begins, ended (with `ms`), or stopped the start.
 * - `progress`: `done` of `total` within a step.
 * - `warning`: something the user should know that does not stop the start.
 * - `ready`: what is enforced now, after verification.
 */
export const bootEventSchema = z.discriminatedUnion("event", [
  z.strictObject({ event: z.literal("start"), step: z.string() }),
  z.strictObject({ event: z.literal("progress"), step: z.string(), done: z.int(), total: z.int() }),
  z.strictObject({ event: z.literal("done"), step: z.string(), ms: z.number(), detail: z.string() }),
  z.strictObject({ event: z.literal("warning"), step: z.string(), text: z.string() }),
  z.strictObject({ event: z.literal("failed"), step: z.string(), text: z.string(), exitCode: z.int() }),
  z.strictObject({ event: z.literal("ready"), text: z.string(), ms: z.number() }),
]);

export type BootEvent = z.infer<typeof bootEventSchema>;
