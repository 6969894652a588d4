import { copyFileSync, lstatSync, mkdirSync, readlinkSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { LOGIN_DIR, type BoxSpec } from "../policy/box-spec.ts";
import { actAs } from "./act-as.ts";

/**
 * Makes each credential file of the agent a link into the volume that all projects share. A client that
 * replaced the link by a file (it wrote anew and renamed) has its newer login taken over first.
 * Runs with the agent's effective ids, in the agent's own folders, so links there lead to nothing more
 * than the agent may touch.
 */
export async function linkLogins({ user, logins = [] }: Pick<BoxSpec, "user" | "logins">): Promise<void> {
  await actAs(user, async () => {
    for (const login of logins) linkLogin(join(user.home, login), join(user.home, LOGIN_DIR, login));
  });
}

function linkLogin(path: string, shared: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  mkdirSync(dirname(shared), { recursive: true, mode: 0o700 });
  const present = lstatSync(path, { throwIfNoEntry: false });
  if (present?.isSymbolicLink() && readlinkSync(path) === shared) return;
  const known = lstatSync(shared, { throwIfNoEntry: false });
  // A pipe in its place would block the start for ever.
  if (known !== undefined && !known.isFile()) rmSync(shared, { recursive: true });
  if (present?.isFile() && present.mtimeMs > (known?.isFile() ? known.mtimeMs : 0)) copyFileSync(path, shared);
  rmSync(path, { force: true });
  symlinkSync(shared, path);
}
