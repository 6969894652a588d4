import { createServer, request } from "node:http";
import { connect, Socket } from "node:net";

// The proxy that one writes in a few lines of Node: streams piped, no policy, no log. argv: the port.

const server = createServer((incoming, outgoing) => {
  const forwarded = request(incoming.url ?? "", { method: incoming.method, headers: incoming.headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
  });
  forwarded.on("error", () => outgoing.destroy());
  incoming.pipe(forwarded);
});
server.on("connect", (incoming, client) => {
  const [host = "", port = "443"] = (incoming.url ?? "").split(":");
  const upstream = connect(Number(port), host, () => {
    client.write("HTTP/1.1 200 OK\r\n\r\n");
    client.pipe(upstream).pipe(client);
  });
  if (client instanceof Socket) client.setNoDelay(true);
  upstream.on("error", () => client.destroy());
  client.on("error", () => upstream.destroy());
});
server.listen(Number(process.argv[2]), "127.0.0.1", 1024);
