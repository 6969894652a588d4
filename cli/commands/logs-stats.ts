import type { z } from "zod";
import type { Edge } from "../edge.ts";
import { describeGaps, readDecisionFiles } from "../log/decision-files.ts";
import { dropOwnProbes } from "../log/own-probes.ts";
import { collectStatistics, type HostStatistics, type Statistics, type statisticsSchema } from "../log/statistics.ts";
import { chooseLog, NO_SESSION } from "./session-choice.ts";

/** Counts by host what a session was allowed and refused, and the bytes that passed; what the box asked itself is left out. */
export async function showStatistics({ host, print, say }: Edge, { json, session }: { json: boolean; session: string | undefined }): Promise<number> {
  const chosen = await chooseLog(host, session);
  const { records, ...gaps } = chosen === undefined ? { records: [], unread: 0, missing: 0, holes: 0 } : readDecisionFiles(chosen.file);
  const statistics = collectStatistics(dropOwnProbes(records));
  for (const text of describeGaps(gaps)) say(text);
  if (json) {
    const answer: z.infer<typeof statisticsSchema> = { version: 1, session: chosen?.id ?? null, running: chosen?.running ?? false, ...statistics, gone: gaps.missing + gaps.holes, unread: gaps.unread };
    await print(`${JSON.stringify(answer, undefined, 2)}\n`);
    return 0;
  }
  say(chosen?.title ?? NO_SESSION);
  if (chosen !== undefined) await print(`${renderStatistics(statistics).join("\n")}\n`);
  return 0;
}

const HEAD = ["host", "protocols", "allowed", "refused", "up", "down", "flows", "first", "last"];
/** Columns of words; the others are numbers. */
const WORDS = new Set(["host", "protocols", "first", "last"]);

/** A table of one line a host, with a line of sums below. */
export function renderStatistics({ hosts, total, first, last }: Statistics): string[] {
  if (hosts.length === 0) return ["Nothing was asked for."];
  const rows = [HEAD, ...hosts.map(describeRow), ["total", "", ...describeSums(total), first ?? "", last ?? ""]];
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) => row.map((cell, column) => (WORDS.has(HEAD[column] ?? "") ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))).join("  ").trimEnd());
}

function describeRow({ host, ports, protocols, first, last, ...sums }: HostStatistics): string[] {
  const name = ports.length === 0 ? host : `${host.includes(":") ? `[${host}]` : host}:${ports.join(",")}`;
  return [name, protocols.map(({ protocol }) => protocol).join(","), ...describeSums(sums), first, last];
}

/** What report mode let through is refused by the policy. */
function describeSums({ allowed, refused, reported, bytesUp, bytesDown, flows }: Statistics["total"]): string[] {
  return [String(allowed), reported === 0 ? String(refused) : `${refused}+${reported} reported`, renderBytes(bytesUp), renderBytes(bytesDown), String(flows)];
}

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

/** Bytes in the largest unit that leaves a number of at least one, in steps of 1000. */
export function renderBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  // What rounds up to a thousand is one of the next unit.
  while (value >= (unit === 0 ? 1000 : 999.95) && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${UNITS[unit] ?? ""}`;
}
