import type { Socket } from "node:net";

const LIMIT_MS = 30_000;

/** Nobody listens at the keeper's socket, or who listened went away. */
export class NoKeeperError extends Error {
  override readonly name = "NoKeeperError";
}

/** Sends one line to the keeper and returns the line that it answers; throws NoKeeperError. */
export function exchangeLine(socket: Socket, question: string, limitMs = LIMIT_MS): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const give = (why: string): void => {
      socket.destroy();
      reject(new NoKeeperError(why));
    };
    socket.setEncoding("utf8");
    socket.setTimeout(limitMs, () => give("the keeper does not answer"));
    socket.once("error", (error) => give(`the keeper cannot be reached: ${error.message}`));
    socket.on("data", (chunk: string) => (text += chunk));
    socket.once("close", () => (text.endsWith("\n") ? resolve(text) : give("the keeper went away")));
    socket.write(`${question}\n`);
  });
}
