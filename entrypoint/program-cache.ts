import { spawnSync } from "node:child_process";
import { dropPrivileges } from "../policy/privileges.ts";
import { KEEPER_IDS, PROXY_IDS } from "../policy/reserved-ids.ts";
import { NODE_OPTIONS, PROGRAM_CACHE, PROGRAMS, PROXY_NODE_OPTIONS, RESOLVER_NODE_OPTIONS } from "./start-proxy.ts";

/** What the proxy says when it is called without options. */
const USAGE = 64;

/**
 * Has keeper and proxy compiled once, while the image is built: Node keeps a cache for each uid and each set
 * of options, so they run here exactly as a box runs them. The cache's directory must be writable for them;
 * the image makes it root's afterwards.
 *
 * Errors: Error when a program does not run.
 */
export function warmProgramCaches(): void {
  warm([...dropPrivileges(KEEPER_IDS), process.execPath, ...NODE_OPTIONS, `${PROGRAMS}/keeper.mjs`, "--warm-cache"], 0);
  for (const options of [RESOLVER_NODE_OPTIONS, PROXY_NODE_OPTIONS]) warm([...dropPrivileges(PROXY_IDS), process.execPath, ...options, `${PROGRAMS}/proxy.mjs`], USAGE);
}

function warm([file = "", ...args]: readonly string[], expected: number): void {
  const { status, error } = spawnSync(file, args, { cwd: "/", env: { NODE_COMPILE_CACHE: PROGRAM_CACHE }, stdio: "ignore" });
  if (status !== expected) throw new Error(`${args.join(" ")} ended with ${status ?? String(error)}`);
}
