import { createHash } from "node:crypto";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { OriginManner } from "../tunnel/origin.ts";
import { BULK, makeBulk } from "./bulk.ts";
import { answering, openHttp, settle, takeAnswer } from "./http-rig.ts";

/** Says of a body what it was. */
const digesting: OriginManner = (socket) => {
  const digest = createHash("sha256");
  let [head, length, left] = ["", 0, Number.NaN];
  socket.on("data", (bytes: Buffer) => {
    let body = bytes;
    if (Number.isNaN(left)) {
      head += bytes.toString("latin1");
      const end = head.indexOf("\r\n\r\n");
      if (end < 0) return;
      left = Number(/content-length: (?<length>[0-9]+)/i.exec(head)?.groups?.["length"] ?? Number.POSITIVE_INFINITY);
      body = Buffer.from(head.slice(end + 4), "latin1");
    }
    digest.update(body);
    length += body.length;
    left -= body.length;
    if (left > 0 && !(left === Number.POSITIVE_INFINITY && body.subarray(-5).equals(Buffer.from("0\r\n\r\n")))) return;
    const text = `${length} ${digest.digest("hex")}`;
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`);
  });
};

/** Everything that comes until the other side ends. */
async function ask(port: number, request: string): Promise<Buffer> {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.write(request);
  return Buffer.concat(await socket.toArray());
}

describe("a body of 64 MiB", () => {
  test("goes up intact", async () => {
    await using path = await openHttp(digesting);
    const bulk = makeBulk(BULK);
    await path.client.send(path.request("POST /", `Content-Length: ${BULK}\r\n`), bulk);
    expect((await takeAnswer(path.client)).body).toBe(`${BULK} ${createHash("sha256").update(bulk).digest("hex")}`);
  });

  test("goes up intact in chunks", async () => {
    await using path = await openHttp(digesting);
    const chunk = makeBulk(1024 * 1024);
    const parts = [...Array.from({ length: 64 }, () => [Buffer.from("100000\r\n"), chunk, Buffer.from("\r\n")]).flat(), Buffer.from("0\r\n\r\n")];
    const whole = Buffer.concat(parts);
    await path.client.send(path.request("POST /", "Transfer-Encoding: chunked\r\n"), whole);
    expect((await takeAnswer(path.client)).body).toBe(`${whole.length} ${createHash("sha256").update(whole).digest("hex")}`);
  });

  const framings: readonly [row: string, head: string, before: string, after: string][] = [
    ["with a length", `Content-Length: ${BULK}\r\n`, "", ""],
    ["as one chunk", "Transfer-Encoding: chunked\r\n", `${BULK.toString(16)}\r\n`, "\r\n0\r\n\r\n"],
    ["until the connection ends", "", "", ""],
  ];
  test.each(framings)("comes down intact %s", async (_row, head, before, after) => {
    const bulk = makeBulk(BULK);
    await using path = await openHttp((socket) => {
      socket.once("data", () => {
        socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n${before}`);
        socket.write(bulk);
        socket.end(after);
      });
    });
    const answer = await ask(path.rig.port, path.request("GET /", "Connection: close\r\n"));
    const start = answer.indexOf("\r\n\r\n") + 4 + before.length;
    expect(answer.toString("latin1", start - before.length, start)).toBe(before);
    expect(answer.subarray(start, start + BULK).equals(bulk)).toBe(true);
    expect(answer.toString("latin1", start + BULK)).toBe(after);
  });
});

describe("nothing is kept back", () => {
  test("server-sent events arrive one by one", async () => {
    await using path = await openHttp(answering("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"));
    await path.client.send(path.request("GET /events"));
    await path.client.takeHead();
    const [server] = path.origin.sockets;
    for (const event of ["8\r\ndata: 1\n\r\n", "8\r\ndata: 2\n\r\n", "8\r\ndata: 3\n\r\n"]) {
      server?.write(event);
      expect((await path.client.take(event.length)).toString()).toBe(event);
    }
    server?.write("0\r\nX-Sum: 3\r\n\r\n");
    expect((await path.client.take(15)).toString()).toBe("0\r\nX-Sum: 3\r\n\r\n");
    await path.client.send(path.request());
    expect(await path.client.takeHead()).toContain("200 OK");
  });

  test("an upload goes on before it is whole", async () => {
    await using path = await openHttp(() => undefined);
    await path.client.send(path.request("POST /", "Transfer-Encoding: chunked\r\n"), "5\r\nhello\r\n");
    while (!path.heard.endsWith("5\r\nhello\r\n")) await sleep(5);
    await path.client.send("0\r\nX-Sum: 1\r\n\r\n");
    while (!path.heard.endsWith("0\r\nX-Sum: 1\r\n\r\n")) await sleep(5);
    expect(path.heard).toContain("\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n");
  });

  test("a client that waits for 100 Continue gets it from the server", async () => {
    await using path = await openHttp((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 100 Continue\r\n\r\n");
        socket.once("data", (body: Buffer) => socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body.toString()}`));
      });
    });
    await path.client.send(path.request("POST /", "Content-Length: 4\r\nExpect: 100-continue\r\n"));
    expect(await path.client.takeHead()).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    expect(path.heard).toContain("\r\nExpect: 100-continue\r\n");
    await path.client.send("body");
    expect(await takeAnswer(path.client)).toMatchObject({ status: 200, body: "body" });
  });

  test("several interim answers come ahead of the last", async () => {
    const hints = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n";
    await using path = await openHttp(answering(`${hints}${hints}HTTP/1.1 204 No Content\r\n\r\n`));
    await path.client.send(path.request() + path.request());
    for (let count = 0; count < 2; count += 1) {
      expect(await path.client.takeHead() + (await path.client.takeHead())).toBe(hints + hints);
      expect(await path.client.takeHead()).toBe("HTTP/1.1 204 No Content\r\n\r\n");
    }
    expect(path.origin.connections).toBe(1);
  });

  test("a server is not asked for more than its client takes", async () => {
    let written = 0;
    await using path = await openHttp((socket) => {
      socket.once("data", () => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${BULK}\r\n\r\n`);
        const block = Buffer.alloc(64 * 1024);
        const push = (): void => {
          while (written < BULK) {
            written += block.length;
            if (!socket.write(block)) return void socket.once("drain", push);
          }
        };
        push();
      });
    });
    path.client.socket.pause();
    await path.client.send(path.request());
    while (path.origin.connections === 0) await sleep(5);
    expect(await settle(() => written)).toBeLessThan(BULK / 2);
  });

  test("a client does not send more than its server takes", async () => {
    await using path = await openHttp((socket) => void socket.pause());
    await path.client.send(path.request("POST /", `Content-Length: ${BULK}\r\n`));
    path.client.socket.write(Buffer.alloc(BULK));
    expect(await settle(() => path.client.socket.writableLength)).toBeGreaterThan(BULK / 2);
  });
});
