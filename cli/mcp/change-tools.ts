import { z } from "zod";
import { quotePath } from "../../policy/parsed.ts";
import type { FileResponse } from "../../sandbox/request.ts";
import { DEFAULT_TASK, path, taskId, type Tool } from "./tool.ts";
import { makeResult } from "./tool-result.ts";

const place = z.strictObject({ path, taskId });

/** Deletes a file, a link or an empty directory. */
export const deleteTool: Tool<typeof place> = {
  name: "delete_file",
  title: "Delete a file",
  description: "Delete a file, a symbolic link (not what it leads to) or an empty directory of a granted folder. A human is always asked, so the call may take minutes. Where the folder has a trash, the result has a trashId for restore_file. Refused without the grant's delete access, by a rule, or when the human declines; then leave the file where it is.",
  input: place,
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false },
  run: async ({ path: asked, taskId: task = DEFAULT_TASK }, { sandbox }) => {
    const done = await sandbox.files.deleteFile({ sessionId: sandbox.sessionId, taskId: task, path: asked, intent: "delete" });
    const restorable = done.trashId === undefined ? "" : ` restore_file brings it back with the trashId ${done.trashId}.`;
    return makeResult(`Deleted ${quotePath(done.path)}.${restorable}`, { ...describe(done), trashId: done.trashId });
  },
};

const move = z.strictObject({
  path,
  destinationPath: z.string().min(1).describe("Where it shall be: the new path itself, not the directory to put it into."),
  intent: z.enum(["move", "rename"]).optional().describe("rename stays in the same directory; move when left out."),
  taskId,
});

/** Moves or renames within a granted folder. */
export const moveTool: Tool<typeof move> = {
  name: "move_file",
  title: "Move or rename a file",
  description: "Move or rename a file or directory within one granted folder. A human is always asked, so the call may take minutes; a file that is at the destination already is replaced after that. Refused: a destination in another granted folder (write a new file there instead), paths outside, what a rule denies at either end, and what the human declines.",
  input: move,
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false },
  run: async ({ path: asked, destinationPath, intent = "move", taskId: task = DEFAULT_TASK }, { sandbox }) => {
    const done = await sandbox.files.moveFile({ sessionId: sandbox.sessionId, taskId: task, path: asked, destinationPath, intent });
    return makeResult(`${intent === "move" ? "Moved" : "Renamed"} ${quotePath(asked)} to ${quotePath(done.path)}.`, describe(done));
  },
};

/** Makes a directory. */
export const directoryTool: Tool<typeof place> = {
  name: "create_directory",
  title: "Make a directory",
  description: "Make one directory in a granted folder; the directory above it must be there. Refused without the grant's create access, outside of the granted folders, and by a rule; fails where the path is taken.",
  input: place,
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false },
  run: async ({ path: asked, taskId: task = DEFAULT_TASK }, { sandbox }) => {
    const done = await sandbox.files.createDirectory({ sessionId: sandbox.sessionId, taskId: task, path: asked, intent: "create" });
    return makeResult(`Made the directory ${quotePath(done.path)}.`, describe(done));
  },
};

const trash = z.strictObject({ trashId: z.string().min(1).max(64).describe("What delete_file returned."), taskId });

/** Brings back what was deleted into a trash. */
export const restoreTool: Tool<typeof trash> = {
  name: "restore_file",
  title: "Restore a deleted file",
  description: "Bring back what delete_file put into the trash, to where it stood. Fails where something stands there now, or where nothing in the trash has this id; refused without the grant's create access and by a rule.",
  input: trash,
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false },
  run: async ({ trashId, taskId: task = DEFAULT_TASK }, { sandbox }) => {
    const done = await sandbox.files.restoreFile({ sessionId: sandbox.sessionId, taskId: task, trashId });
    return makeResult(`Restored ${quotePath(done.path)}.`, { ...describe(done), trashId });
  },
};

function describe({ path: done, intent, size, confirmed, verdict }: FileResponse): Record<string, unknown> {
  return { path: done, intent, size, confirmed, rule: verdict.ruleId, tags: verdict.tags };
}
