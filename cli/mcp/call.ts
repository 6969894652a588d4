import { AsyncLocalStorage } from "node:async_hooks";
import type { ElicitRequestFormParams, ElicitResult, ServerContext } from "@modelcontextprotocol/server";
import { GuardError } from "../../sandbox/errors.ts";

/** Asks whoever sits at the client; undefined where the client has no way to, or may not be believed. */
export type Elicit = (form: ElicitRequestFormParams, options: { signal: AbortSignal; timeout: number }) => Promise<ElicitResult>;

/** One call of a tool, while it goes on. */
export type Call = {
  /** Aborts when the client takes the call back, or goes. */
  signal: AbortSignal;
  elicit: Elicit | undefined;
  /** Tells a client that wants to know how far it is: `done` of `total` steps more than at the last stage. */
  report: (message: string, done: number, total?: number) => void;
};

/** Questions come out of the guard without saying for whom; what runs them knows. */
const current = new AsyncLocalStorage<Call>();

/** Runs a tool as part of a call. */
export async function withinCall<T>(call: Call, run: () => Promise<T>): Promise<T> {
  return await current.run(call, run);
}

/** The call that asks; undefined outside of any. */
export function findCall(): Call | undefined {
  return current.getStore();
}

/** Makes the call of a request. Progress only ever grows, as the protocol wants it, whatever stages report. */
export function makeCall({ mcpReq }: ServerContext, elicit: Elicit | undefined): Call {
  const token = mcpReq._meta?.progressToken;
  let [reached, lastDone] = [0, 0];
  const report: Call["report"] = (message, done, total) => {
    if (token === undefined || mcpReq.signal.aborted) return;
    const step = done > lastDone ? done - lastDone : 1;
    const left = total === undefined ? undefined : total - done;
    reached += step;
    lastDone = done;
    // A client that went away needs to hear nothing.
    mcpReq.notify({ method: "notifications/progress", params: { progressToken: token, progress: reached, total: left === undefined ? undefined : reached + left, message } }).catch(() => undefined);
  };
  return { signal: mcpReq.signal, elicit, report };
}

/** Throws GuardError `declined` for a call that was taken back: what has not begun does not begin. */
export function refuseCancelled({ signal }: Pick<Call, "signal">): void {
  if (signal.aborted) throw new GuardError("declined", "cancelled", { what: "the request was cancelled", fix: "ask again if it is still wanted" });
}
