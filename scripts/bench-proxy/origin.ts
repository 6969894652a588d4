import { createServer, type Socket } from "node:net";

// What everything is downloaded from: /bytes/N, and a small answer to all else. argv: addresses to listen on, ADDRESS:PORT.

const BLOCK = Buffer.alloc(1024 * 1024, "x");
const SMALL = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nCache-Control: no-store\r\nContent-Type: text/plain\r\n\r\nhello\n";
const CLOSING = SMALL.replace("Content-Length", "Connection: close\r\nContent-Length");

function serve(socket: Socket): void {
  socket.setNoDelay(true);
  socket.on("error", () => socket.destroy());
  let rest = "";
  socket.on("data", (bytes) => {
    rest += bytes.toString("latin1");
    for (let end = rest.indexOf("\r\n\r\n"); end >= 0; end = rest.indexOf("\r\n\r\n")) {
      const head = rest.slice(0, end);
      rest = rest.slice(end + 4);
      const size = /^GET (?:http:\/\/[^/]+)?\/bytes\/(?<size>[0-9]+) /.exec(head)?.groups?.["size"];
      if (size !== undefined) return send(socket, Number(size));
      if (/\nconnection: close/i.test(head)) return void socket.end(CLOSING);
      socket.write(SMALL);
    }
  });
}

function send(socket: Socket, size: number): void {
  let left = size;
  socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\nConnection: close\r\nCache-Control: no-store\r\n\r\n`);
  const push = (): void => {
    while (left > 0) {
      const block = left >= BLOCK.length ? BLOCK : BLOCK.subarray(0, left);
      left -= block.length;
      if (!socket.write(block)) return void socket.once("drain", push);
    }
    socket.end();
  };
  push();
}

for (const where of process.argv.slice(2)) {
  const colon = where.lastIndexOf(":");
  createServer(serve).listen({ host: where.slice(0, colon), port: Number(where.slice(colon + 1)), backlog: 1024 });
}
