import { closeSync, constants, fstatSync, lstatSync, openSync, readSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { type ChainReport, verifyChain } from "../../sandbox/audit-chain.ts";
import { type AuditEntry, parseEntry } from "../../sandbox/audit-entry.ts";
import { LineCutter, readAuditEntries, readAuditLines } from "../../sandbox/audit-reader.ts";
import { summarizeTasks, taskSummarySchema } from "../../sandbox/task-summary.ts";
import type { AuditCommand } from "../args-audit.ts";
import type { Edge } from "../edge.ts";
import { chooseLog, chooseLogOrFile, type ChosenLog, NO_LOG, reading } from "./audit-choice.ts";
import { renderAuditEntry, renderReport, renderTaskSummary } from "./audit-view.ts";

type Show = Extract<AuditCommand, { verb: "audit show" }>;

const BATCH_LINES = 1000;
const POLL_MS = 150;
const CHUNK_BYTES = 256 * 1024;

/** The answer of `agentbox audit summary --json`; `session` is null where none is recorded. */
export const auditSummarySchema = z.strictObject({
  version: z.literal(1),
  session: z.string().nullable(),
  /** Hash of the last entry that the chain proves. */
  head: z.string().nullable(),
  /** Where the chain breaks: what is told of anything behind it is not proven. */
  broken: z.strictObject({ line: z.int(), kind: z.string(), detail: z.string() }).nullable(),
  tasks: z.array(taskSummarySchema),
});

/** Performs one command about the audit log and returns its exit code. */
export async function answerAudit(edge: Edge, command: AuditCommand): Promise<number> {
  switch (command.verb) {
    case "audit show":
      return await showAudit(edge, command);
    case "audit verify":
      return await verifyAudit(edge, command);
    case "audit summary":
      return await summarizeAudit(edge, command);
  }
}

/** Shows every entry of a session, or those of one task; with `follow` also those to come, until the session or the reader ends. */
async function showAudit({ host, print, say }: Edge, { session, task, json, follow }: Show): Promise<number> {
  const chosen = chooseLog(host, session);
  say(chosen === undefined ? NO_LOG : `session ${chosen.session}`);
  if (chosen === undefined) return 0;
  const render = (entry: AuditEntry): string => (task !== undefined && entry.task !== task ? "" : `${json ? JSON.stringify(entry) : renderAuditEntry(entry)}\n`);
  if (follow) return await reading(chosen, async () => await followAudit({ chosen, print, say, render }));
  await reading(chosen, async () => {
    let batch: string[] = [];
    for (const entry of readAuditEntries(chosen.file)) {
      batch.push(render(entry));
      if (batch.length < BATCH_LINES) continue;
      await print(batch.join(""));
      batch = [];
    }
    await print(batch.join(""));
    tellReport(verifyChain(readAuditLines(chosen.file)), say);
  });
  return 0;
}

type Following = Pick<Edge, "print" | "say"> & { chosen: ChosenLog; render: (entry: AuditEntry) => string };

/** Ends when the session closed its log, or the log is another file than it was. */
async function followAudit({ chosen: { file }, print, say, render }: Following): Promise<number> {
  const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const { ino } = fstatSync(fd);
    const cutter = new LineCutter();
    const chunk = Buffer.alloc(CHUNK_BYTES);
    let closed = false;
    for (;;) {
      const bytes = readSync(fd, chunk, 0, CHUNK_BYTES, null);
      const entries = [...cutter.take(chunk.subarray(0, bytes))].flatMap(({ text }) => parseEntry(text) ?? []);
      if (entries.length > 0) await print(entries.map(render).join(""));
      closed = entries.length === 0 ? closed : entries.at(-1)?.event === "closed";
      if (bytes > 0) continue;
      if (closed) return 0;
      if (lstatSync(file, { throwIfNoEntry: false })?.ino !== ino) {
        say("the log was removed or replaced");
        return 0;
      }
      await sleep(POLL_MS);
    }
  } finally {
    closeSync(fd);
  }
}

/** Says up to where a log proves itself: 0 where that is all of it, 1 where something breaks it. */
async function verifyAudit({ host, print, say }: Edge, { target, head }: Extract<AuditCommand, { verb: "audit verify" }>): Promise<number> {
  const chosen = chooseLogOrFile(host, target);
  if (chosen.session !== undefined) say(`session ${chosen.session}`);
  const report = await reading(chosen, () => verifyChain(readAuditLines(chosen.file), { head }));
  await print(`${renderReport(report)}\n`);
  if (report.torn > 0) say(`${report.torn} bytes of lines that were torn are kept beside the log`);
  if (report.broken === undefined && !report.closed) say("its last entry is not the end of the session: it runs, was killed, or the end was cut off");
  if (report.broken === undefined && head === undefined) say("who can write the file can also write a whole new chain: note the head elsewhere, and compare with --head");
  return report.broken === undefined ? 0 : 1;
}

/** Tells what each task of a session read, changed, asked and was refused. */
async function summarizeAudit({ host, print, say }: Edge, { session, task, json }: Extract<AuditCommand, { verb: "audit summary" }>): Promise<number> {
  const chosen = chooseLog(host, session);
  const answer = chosen === undefined ? undefined : await reading(chosen, () => ({ tasks: summarizeTasks(readAuditEntries(chosen.file)), report: verifyChain(readAuditLines(chosen.file)) }));
  const tasks = (answer?.tasks ?? []).filter(({ taskId }) => task === undefined || taskId === task);
  if (json) {
    const told: z.infer<typeof auditSummarySchema> = { version: 1, session: chosen?.session ?? null, head: answer?.report.head ?? null, broken: answer?.report.broken ?? null, tasks };
    await print(`${JSON.stringify(told, undefined, 2)}\n`);
    return 0;
  }
  say(chosen === undefined ? NO_LOG : `session ${chosen.session}`);
  if (answer === undefined) return 0;
  await print(tasks.length === 0 ? "No operation was asked for.\n" : `${tasks.map((one) => renderTaskSummary(one).join("\n")).join("\n\n")}\n`);
  tellReport(answer.report, say);
  return 0;
}

function tellReport(report: ChainReport, say: Edge["say"]): void {
  say(report.broken === undefined ? `entry ${report.entries}, head ${report.head}` : `not proven from some line on: ${renderReport(report)}`);
}
