import { renderNeed } from "../../policy/preflight.ts";
import type { PreflightMode } from "../../policy/preflight-mode.ts";
import type { Edge } from "../edge.ts";
import { judgeCommand } from "./command-judgement.ts";

type PreflightQuery = { command: readonly string[]; mode: PreflightMode | undefined; agent: string | undefined; json: boolean };

/** Says which hosts and sockets a command obviously needs and what the policy says of them. The exit code is 1 where something is refused. */
export async function checkCommand({ host, print, say }: Edge, { command, mode, agent, json }: PreflightQuery): Promise<number> {
  const answer = await judgeCommand(host, { asked: { words: command }, mode, agent });
  const code = answer.refused ? 1 : 0;
  if (json) {
    await print(`${JSON.stringify(answer, undefined, 2)}\n`);
    return code;
  }
  for (const note of answer.notes) say(note);
  if (answer.session !== null) say(`judged by session ${answer.session}, which runs`);
  await print(answer.needs.length === 0 ? `Nothing that is plain to see needs the network (${answer.mode}).\n` : `${answer.needs.map(renderNeed).join("\n")}\n`);
  return code;
}
