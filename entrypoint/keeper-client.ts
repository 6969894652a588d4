import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { CONTROL_SOCKET } from "../policy/keeper-paths.ts";
import { type ControlReply, controlReplySchema, type ControlRequest } from "../policy/keeper-message.ts";
import { KEEPER_IDS } from "../policy/reserved-ids.ts";
import { exchangeLine, NoKeeperError } from "./keeper-exchange.ts";

type AskOptions = {
  /** Makes the connection; the keeper's socket where left out. */
  dial?: () => Socket;
  limitMs?: number;
};

/** Sends one request to the keeper and returns its reply; throws NoKeeperError. */
async function askKeeper(request: ControlRequest, { dial = () => connect(CONTROL_SOCKET), limitMs }: AskOptions = {}): Promise<ControlReply> {
  const text = await exchangeLine(dial(), JSON.stringify(request), limitMs);
  const reply = controlReplySchema.safeParse(JSON.parse(text));
  if (!reply.success) throw new NoKeeperError(`the keeper answered something else than a reply: ${reply.error.message}`);
  return reply.data;
}

const RETRY_MS = 10;
const START_LIMIT_MS = 8000;

/** As `askKeeper`, but from the entrypoint, while the keeper may still be on its way up; one that has `ended` is not waited for. */
export async function askNewKeeper(request: ControlRequest, ended?: AbortSignal): Promise<ControlReply> {
  const limit = performance.now() + START_LIMIT_MS;
  for (;;) {
    try {
      return await askKeeper(request, { dial: dialAsKeeper });
    } catch (error) {
      if (!(error instanceof NoKeeperError) || ended?.aborted === true || performance.now() > limit) throw error;
      await sleep(RETRY_MS);
    }
  }
}

/** Root has no capability to enter the keeper's directory. Node connects within the call, so the ids are the keeper's for this moment only. */
function dialAsKeeper(): Socket {
  process.setegid?.(KEEPER_IDS.gid);
  process.seteuid?.(KEEPER_IDS.uid);
  try {
    return connect(CONTROL_SOCKET);
  } finally {
    process.seteuid?.(0);
    process.setegid?.(0);
  }
}
