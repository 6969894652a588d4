import type { z } from "zod";
import { renderAlways } from "../../policy/allow-command.ts";
import type { Edge } from "../edge.ts";
import { describeGaps, readDecisions } from "../log/decision-files.ts";
import { dropOwnProbes } from "../log/own-probes.ts";
import { type blockedSchema, collectRefusals, type Refusal } from "../log/refusals.ts";
import { chooseSession, describeChoice, NO_SESSION } from "./session-choice.ts";

/** Shows what the running or last session of this project was refused, and what would allow it. */
export async function showBlocked({ host, print, say }: Edge, { all, json, session }: { all: boolean; json: boolean; session: string | undefined }): Promise<number> {
  const chosen = await chooseSession(host, session);
  const { records, ...gaps } = chosen === undefined ? { records: [], unread: 0, missing: 0, holes: 0 } : readDecisions(chosen.directory);
  const { refusals, telemetry } = collectRefusals(chosen === undefined || all ? records : dropOwnProbes(records), { all });
  for (const text of describeGaps(gaps)) say(text);
  if (json) {
    const answer: z.infer<typeof blockedSchema> = { version: 1, session: chosen?.record.id ?? null, running: chosen?.running ?? false, refusals, telemetry };
    await print(`${JSON.stringify(answer, undefined, 2)}\n`);
    return 0;
  }
  say(chosen === undefined ? NO_SESSION : describeChoice(chosen));
  if (chosen === undefined) return 0;
  await print(refusals.length === 0 ? "Nothing was refused.\n" : `${refusals.map((refusal) => renderRefusal(chosen.running ? refusal : { ...refusal, command: refusal.command === null ? null : renderAlways(refusal.command) })).join("\n")}\n`);
  if (telemetry > 0) say(`${telemetry} ${telemetry === 1 ? "host" : "hosts"} of telemetry left out; --all shows ${telemetry === 1 ? "it" : "them"}`);
  if (!chosen.running && refusals.some(({ command }) => command !== null)) say("nothing runs now: the commands write into the configuration, and the next start allows it");
  return 0;
}

/** One refusal as one line: when, what, how often, why, and what allows it. */
export function renderRefusal({ time, host, port, protocol, method, reason, rule, source, detail, program, reported, count, command, advice }: Refusal): string {
  const name = host.includes(":") && port !== null ? `[${host}]` : host;
  const parts = [
    `${time}  ${name}${port === null ? "" : `:${port}`}  ${[protocol, method].filter((word) => word !== null).join(" ")}  ${reason}`,
    ...(count > 1 ? [`${count} times`] : []),
    ...(reported ? ["let through (report mode)"] : []),
    ...(rule === null ? [] : [`rule ${rule}${source === null ? "" : ` (${source})`}`]),
    ...(detail === null ? [] : [detail]),
    ...(program === null ? [] : [`by ${program}`]),
    ...(command === null ? [] : [`allow it: ${command}`]),
    ...(advice === null ? [] : [advice]),
  ];
  return parts.join("  ");
}
