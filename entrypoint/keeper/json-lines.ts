import type { Socket } from "node:net";

/** Calls `take` with each line that comes, parsed; what is no JSON comes as undefined, and a line beyond `limit` characters ends the connection. */
export function readJsonLines(socket: Socket, limit: number, take: (message: unknown) => void): void {
  let parts: string[] = [];
  let length = 0;
  socket.setEncoding("utf8");
  socket.on("data", (text: string) => {
    const lines = text.split("\n");
    const last = lines.pop() ?? "";
    for (const line of lines) {
      take(parseJson([...parts, line].join("")));
      parts = [];
      length = 0;
    }
    if (last !== "") parts.push(last);
    length += last.length;
    if (length > limit) socket.destroy();
  });
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Whoever asked holds a schema, which refuses it.
    return undefined;
  }
}
