import type { ServerResponse } from "node:http";
import type { WrittenLine } from "../log/decision-log.ts";
import type { AdminSubject } from "./admin-routes.ts";

/** Sent where nothing happens, so that a client that is gone is noticed (WHATWG HTML, server-sent events). */
const HEARTBEAT_MS = 15_000;
/** A client that reads no faster is cut off; it comes again with what it missed in the log. */
const MAX_WAITING_BYTES = 1024 * 1024;

/** Streams every line of the log as a server-sent event, named after its kind and numbered as it is. */
export function streamEvents(response: ServerResponse, subject: Pick<AdminSubject, "listen">): void {
  response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff" });
  response.flushHeaders();
  const write = (text: string): void => {
    if (response.writableLength > MAX_WAITING_BYTES) response.destroy();
    else response.write(text);
  };
  const stop = subject.listen((line) => write(renderEvent(line)));
  const heartbeat = setInterval(() => write(":\n\n"), HEARTBEAT_MS);
  response.once("close", () => {
    clearInterval(heartbeat);
    stop();
  });
}

/** A line of the log holds no line end, so it is one field. */
function renderEvent({ seq, text, entry }: WrittenLine): string {
  return `id: ${seq}\nevent: ${entry.kind}\ndata: ${text}\n\n`;
}
