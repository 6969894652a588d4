import { readSessions } from "./session-record.ts";
import { removeWhole } from "./session.ts";

/** How many ended sessions are kept, and for how long; the log of a session may hold what it reached. */
const keptSessions = 20;
const keptMs = 14 * 24 * 3_600_000;

/** Removes what ended sessions left, except the newest of the last days. `now` is Unix time in ms. */
export async function expireSessions(agentboxHome: string, now: number): Promise<void> {
  const ended = (await readSessions(agentboxHome)).flatMap(({ directory, record }) => (record.ended === null ? [] : [{ directory, time: Date.parse(record.ended.time) }]));
  const newest = ended.toSorted((a, b) => b.time - a.time);
  const expired = newest.filter(({ time }, index) => index >= keptSessions || now - time > keptMs);
  for (const { directory } of expired) await removeWhole(directory);
}
