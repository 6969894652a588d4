import { z } from "zod";
import { UsageError } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import { INTENTS, type FileRequest, type MoveRequest } from "../../sandbox/request.ts";
import { DEFAULT_TASK, path, taskId, type Tool } from "./tool.ts";
import { makeResult } from "./tool-result.ts";

const DEFAULT_ENTRIES = 1000;
const MAX_ENTRIES = 10_000;
const MAX_PREVIEWED = 500;
/** Each name of them is looked up while everybody else waits. */
const MAX_PREVIEWED_TEXT = 128 * 1024;

const list = z.strictObject({
  path: path.optional().describe("A directory: absolute, or relative to the first granted folder, which it is when left out."),
  recursive: z.boolean().optional().describe("What lies in directories below as well; false when left out."),
  limit: z.int().min(1).max(MAX_ENTRIES).optional().describe(`The most entries to return, up to ${MAX_ENTRIES}; ${DEFAULT_ENTRIES} when left out.`),
  taskId,
});

/** Lists a directory. */
export const listTool: Tool<typeof list> = {
  name: "list_files",
  title: "List a directory",
  description: "List a directory of a granted folder: name, path, kind (file, directory, link, other) and size of each entry. Links are shown and not followed; hidden and system names only where they are granted. Where truncated is true there is more: raise limit, or list the directories below one by one. Directories below that a rule denies are named only. Refused outside of the granted folders and by a rule.",
  input: list,
  annotations: { readOnlyHint: true, idempotentHint: true },
  run: async ({ path: asked = ".", recursive = false, limit = DEFAULT_ENTRIES, taskId: task = DEFAULT_TASK }, { sandbox }) => {
    const { path: listed, entries, truncated, verdict } = await sandbox.files.listFiles({ sessionId: sandbox.sessionId, taskId: task, path: asked, intent: "list", recursive, limit });
    const lines = entries.map((entry) => `${entry.kind} ${entry.size} ${quotePath(recursive ? entry.path : entry.name)}`);
    const tail = truncated ? ["There is more; this is not all."] : [];
    return makeResult([`${quotePath(listed)} holds ${entries.length} entries (kind, size, name):`, ...lines, ...tail].join("\n"), { path: listed, entries, truncated, rule: verdict.ruleId });
  },
};

const operation = z.strictObject({
  intent: z.enum(INTENTS),
  path,
  destinationPath: z.string().min(1).optional().describe("Of move and rename."),
  size: z.int().min(0).optional().describe("Bytes that shall be written, where they are known."),
});
const preview = z.strictObject({ operations: z.array(operation).min(1).max(MAX_PREVIEWED), taskId });

/** Tells what would be decided, without doing or asking anything. */
export const previewTool: Tool<typeof preview> = {
  name: "preview_operations",
  title: "Preview operations",
  description: `Tell what the guard would decide about up to ${MAX_PREVIEWED} operations that belong together: allow, confirm (a human is asked) or deny for each and for all, and the risks of all together. Nothing is done and nobody is asked. Use it before a larger change, to tell the user what is coming. What lies outside of the granted folders is deny, too.`,
  input: preview,
  annotations: { readOnlyHint: true, idempotentHint: true },
  run: async ({ operations, taskId: task = DEFAULT_TASK }, { sandbox }) => {
    const text = operations.reduce((sum, { path: asked, destinationPath = "" }) => sum + asked.length + destinationPath.length, 0);
    if (text > MAX_PREVIEWED_TEXT) throw new UsageError({ what: `the paths are ${text} characters together`, expected: `at most ${MAX_PREVIEWED_TEXT}`, fix: "ask about fewer operations at once" });
    const requests = operations.map(({ intent, path: asked, destinationPath, size }): FileRequest | MoveRequest => {
      const request = { sessionId: sandbox.sessionId, taskId: task, path: asked, intent, sizeHint: size };
      return destinationPath === undefined ? request : { ...request, destinationPath };
    });
    const { decision, tags, verdicts } = sandbox.files.previewBatch(requests);
    const lines = verdicts.map((verdict, index) => `${verdict.decision} ${operations[index]?.intent ?? ""} ${quotePath(operations[index]?.path ?? "")}: ${verdict.reason} [${verdict.ruleId}]`);
    return makeResult([`All together: ${decision}; risks: ${tags.length === 0 ? "none" : tags.join(", ")}.`, ...lines].join("\n"), { decision, tags, verdicts });
  },
};

const task = z.strictObject({ taskId });

/** Ends a task and sums it up. */
export const endTaskTool: Tool<typeof task> = {
  name: "end_task",
  title: "End a task",
  description: "End a task: its entries in the audit log are on the disk, and the result sums up what was read, written, created, deleted, moved, asked and refused. Call it when a piece of work is done; the same taskId then begins anew.",
  input: task,
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true },
  run: async ({ taskId: ended = DEFAULT_TASK }, { sandbox }) => {
    const summary = await sandbox.endTask(ended);
    const counts = Object.entries(summary.counts).flatMap(([name, count]) => (count === 0 ? [] : [`${name} ${count}`]));
    return makeResult(`Task ${ended} is over: ${counts.length === 0 ? "nothing was done" : counts.join(", ")}; ${summary.bytesRead} bytes read, ${summary.bytesWritten} written.`, { ...summary });
  },
};
