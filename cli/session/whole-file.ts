import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { open, rename, rm } from "node:fs/promises";

/** The rights of a new file: the umask takes some of them away, or none. */
export type WholeMode = number | { exact: number };

/** How the drafts of `writeWhole` end, for whoever sweeps up after a process that was killed. */
export const DRAFT_SUFFIX = ".new";

/**
 * Writes a file whole or not at all, so that a reader never sees half of it. Neither the file nor its draft is ever
 * written through a link: a project may come with links under any name that can be guessed.
 */
export async function writeWhole(file: string, content: string, mode: WholeMode): Promise<void> {
  const draft = `${file}.${randomBytes(12).toString("hex")}${DRAFT_SUFFIX}`;
  const handle = await open(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, typeof mode === "number" ? mode : mode.exact);
  try {
    try {
      await handle.writeFile(content);
      if (typeof mode !== "number") await handle.chmod(mode.exact);
    } finally {
      await handle.close();
    }
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}
