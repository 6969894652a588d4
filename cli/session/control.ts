import { EngineError } from "../../policy/errors.ts";
import { type ControlReply, controlReplySchema, type ControlRequest } from "../../policy/keeper-message.ts";
import { KEEPER_IDS } from "../../policy/reserved-ids.ts";
import type { Engine } from "../engine/engine.ts";

/** A keeper waits for its proxy for seconds, and answers then in any case. */
const ANSWER_MS = 15_000;
/** For what closes something: a box at its limits takes long to start a program, and may be kept busy on purpose. */
export const PATIENT_MS = 45_000;

/** Speaks for the host in a box, under the keeper's own uid and with nothing of the container's environment. */
const controlProgram = ["/usr/bin/env", "--ignore-environment", "/usr/local/bin/node", "--disable-sigusr1", "/usr/local/lib/agentbox/control.mjs"];

/**
 * Asks the keeper of a running box. A refused request is an answer; EngineError where there is none: the
 * box is not up yet, has ended, or is of another version. `container` is the one that holds the namespace.
 */
export async function sendControl(engine: Engine, { container }: { container: string }, request: ControlRequest, answerMs = ANSWER_MS): Promise<ControlReply> {
  const argv = ["exec", "--interactive", "--user", `${KEEPER_IDS.uid}:${KEEPER_IDS.gid}`, container, ...controlProgram];
  const result = await engine.client.call(argv, { input: JSON.stringify(request), timeoutMs: answerMs });
  const answer = controlReplySchema.safeParse(parseJson(result.stdout));
  if (answer.success) return answer.data;
  throw new EngineError({
    what: `${container} did not answer: ${(result.stderr.trim() || result.stdout.trim() || `exit code ${result.exitCode}`).slice(0, 300)}`,
    expected: "a box whose firewall is up",
    fix: "try again when the box has started; one of another version of agentbox has to be started anew",
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
