import { constants, futimesSync, openSync, rmSync } from "node:fs";
import { DECISION_LOG_DIR } from "../../policy/box-spec.ts";

const FILE = `${DECISION_LOG_DIR}/keeper.alive`;
const EVERY_MS = 5000;

/**
 * Touches a file of the session every five seconds, so that the host sees when this process is gone: a box
 * that runs out of memory may lose it. The file is its own, whatever another program of the folder put there.
 */
export function giveSignsOfLife(): void {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  rmSync(FILE, { force: true });
  const fd = openSync(FILE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o644);
  setInterval(() => futimesSync(fd, new Date(), new Date()), EVERY_MS);
}
