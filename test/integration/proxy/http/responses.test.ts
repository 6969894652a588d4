import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { answering, OK, openHttp, takeAnswer } from "./http-rig.ts";

describe("a response without a body is over with its head", () => {
  const rows: readonly [row: string, method: string, response: string][] = [
    ["to HEAD, whatever length it tells (RFC 9112 6.3)", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"],
    ["to HEAD, though it says that it is chunked", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"],
    ["to HEAD, though it tells no length", "HEAD", "HTTP/1.1 200 OK\r\n\r\n"],
    ["of 304, whatever length it tells", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n"],
    ["of 204", "GET", "HTTP/1.1 204 No Content\r\n\r\n"],
    ["of length 0", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"],
  ];
  test.each(rows)("%s", async (_row, method, response) => {
    await using path = await openHttp(answering(response));
    for (let count = 0; count < 2; count += 1) {
      await path.client.send(path.request(`${method} /`));
      expect((await path.client.take(response.length)).toString()).toBe(response);
    }
    expect(path.origin.connections).toBe(1);
  });
});

describe("a response that two readers could take differently is 502, and nothing of it goes on", () => {
  const rows: readonly [row: string, response: string, sentence: string][] = [
    ["both length fields", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "both Content-Length"],
    ["two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", "several Content-Length"],
    ["another coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "not chunked"],
    ["a folded line", "HTTP/1.1 200 OK\r\nX: 1\r\n 2\r\n\r\n", "folded"],
    ["a LF alone", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", "LF"],
    ["a head over 64 KiB", `HTTP/1.1 200 OK\r\nX: ${"x".repeat(70_000)}\r\n\r\n`, "larger than"],
    ["another protocol", "220 mail.example.com ESMTP\r\n", "not HTTP/1"],
    ["chunked in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.0 knows no"],
    ["a question for a password for a proxy", 'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="x"\r\nContent-Length: 0\r\n\r\n', "password"],
  ];
  test.each(rows)("%s", async (_row, response, sentence) => {
    await using path = await openHttp(answering((head) => (head.includes("/good") ? OK : response)));
    await path.client.send(path.request() + path.request("GET /good"));
    const answer = await takeAnswer(path.client);
    expect(answer.status).toBe(502);
    expect(answer.body).toContain(sentence);
    expect(await takeAnswer(path.client)).toMatchObject({ status: 200, body: "ok" });
    expect(path.origin.connections).toBe(2);
  });

  test("a malformed chunk ends the connection by a reset, as what went before is not whole", async () => {
    await using path = await openHttp(answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"));
    await path.client.send(path.request());
    await path.client.takeHead();
    path.origin.sockets[0]?.write("5\r\nhello\r\n");
    expect((await path.client.take(10)).toString()).toBe("5\r\nhello\r\n");
    path.origin.sockets[0]?.write("x\r\n");
    await path.client.rest();
    expect(path.client.error).toMatchObject({ code: "ECONNRESET" });
  });

  test("a chunked response to HTTP/1.0 is 502, since the client does not know chunks", async () => {
    await using path = await openHttp(answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"));
    await path.client.send(`GET http://${path.authority}/ HTTP/1.0\r\n\r\n`);
    expect(await takeAnswer(path.client)).toMatchObject({ status: 502 });
  });

  test("a malformed chunk of a request never reaches the server, which sees its end", async () => {
    const errors: unknown[] = [];
    await using path = await openHttp((socket) => void socket.on("error", (error) => errors.push(error)));
    await path.client.send(path.request("POST /", "Transfer-Encoding: chunked\r\n"), "5\r\nhello\r\n", "0\r\nContent-Length: 5\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n");
    expect(await takeAnswer(path.client)).toMatchObject({ status: 400 });
    await path.client.rest();
    expect(path.heard).not.toContain("smuggled");
    expect(path.heard).not.toContain("Content-Length");
    expect(path.rig.readLog().at(-1)).toMatchObject({ action: "deny", reason: "denied", detail: expect.stringContaining("chunk") });
  });
});

describe("bytes that no request asked for", () => {
  test("behind a response reach nobody: their connection is not used again", async () => {
    await using path = await openHttp(answering((head) => (head.includes("/first") ? `${OK}HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison` : OK)));
    await path.client.send(path.request("GET /first"));
    expect(await takeAnswer(path.client)).toMatchObject({ body: "ok" });
    await path.client.send(path.request("GET /second"));
    expect(await takeAnswer(path.client)).toMatchObject({ body: "ok" });
    expect(path.origin.connections).toBe(2);
  });

  test("on an idle connection reach nobody either", async () => {
    await using path = await openHttp();
    await path.client.send(path.request("GET /first"));
    await takeAnswer(path.client);
    const [server] = path.origin.sockets;
    server?.write("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison");
    await sleep(50);
    await path.client.send(path.request("GET /second"));
    expect(await takeAnswer(path.client)).toMatchObject({ body: "ok" });
    expect(path.origin.connections).toBe(2);
  });
});
