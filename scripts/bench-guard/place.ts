import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { makeCallback } from "../../sandbox/confirmation.ts";
import { Sandbox } from "../../sandbox/sandbox.ts";

export const SESSION = "bench";

/** A granted directory, one beside it that nobody guards, and the guard with its log. */
export type GuardedPlace = AsyncDisposable & { sandbox: Sandbox; root: string; plain: string };

/** Makes the place below `top`; every question is answered with a yes for the session. */
export function makeGuardedPlace(top: string): GuardedPlace {
  const [root, plain] = [join(top, "root"), join(top, "plain")];
  for (const directory of [root, plain]) mkdirSync(directory);
  const sandbox = new Sandbox({ sessionId: SESSION, agentboxHome: join(top, ".agentbox"), frontEnds: [makeCallback(async () => "session")] });
  sandbox.grant({ root, access: { read: true, write: true, create: true, delete: true } });
  return { sandbox, root, plain, [Symbol.asyncDispose]: async () => await sandbox.close() };
}

/** Microseconds that one of `count` runs takes. */
export async function timeEach(count: number, run: (index: number) => Promise<unknown>): Promise<number> {
  const started = performance.now();
  for (let index = 0; index < count; index += 1) await run(index);
  return ((performance.now() - started) * 1000) / count;
}
