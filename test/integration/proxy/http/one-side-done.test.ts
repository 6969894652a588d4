import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { BULK } from "./bulk.ts";
import { answering, OK, openHttp, settle, takeAnswer } from "./http-rig.ts";

describe("one side is done before the other", () => {
  test("a client that closes its half gets its answer", async () => {
    await using path = await openHttp((socket) => void socket.once("data", () => void setTimeout(() => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), 100)));
    path.client.socket.end(path.request());
    expect((await path.client.rest()).toString()).toMatch(/ok$/);
  });

  test("a client that closes its half behind several requests gets all answers", async () => {
    await using path = await openHttp();
    path.client.socket.end(path.request().repeat(3));
    expect((await path.client.rest()).toString().match(/200 OK/g)).toHaveLength(3);
  });

  test("a client that ends in the middle of its body is no request: the server is told by a reset", async () => {
    const errors: unknown[] = [];
    await using path = await openHttp((socket) => void socket.on("error", (reason) => errors.push(reason)));
    path.client.socket.end(path.request("POST /", "Content-Length: 10\r\n", "12345"));
    expect((await path.client.rest()).toString()).toMatch(/^HTTP\/1\.1 400 [^]*middle of its body/);
    while (errors.length === 0) await sleep(5);
    expect(errors[0]).toMatchObject({ code: "ECONNRESET" });
  });

  test("a client that resets while it waits takes its server's connection along", async () => {
    const closed: boolean[] = [];
    await using path = await openHttp((socket) => void socket.on("close", () => closed.push(true)));
    await path.client.send(path.request());
    while (path.origin.connections === 0) await sleep(5);
    path.client.socket.resetAndDestroy();
    while (closed.length === 0) await sleep(5);
    expect(path.rig.context.flows.size).toBe(0);
  });

  test("an answer that comes while the body is still sent ends it, and the client can read it", async () => {
    await using path = await openHttp((socket) => {
      socket.once("data", () => {
        socket.end("HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\nConnection: close\r\n\r\nmuch");
        socket.resume();
      });
    });
    await path.client.send(path.request("POST /", `Content-Length: ${BULK}\r\n`));
    await path.client.send(Buffer.alloc(100_000));
    expect(await takeAnswer(path.client)).toMatchObject({ status: 413, body: "much" });
    await path.client.rest();
    expect(path.client.error).toBeUndefined();
  });

  test("an answer that comes while the body is still read does not end it", async () => {
    await using path = await openHttp((socket) => void socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly")));
    await path.client.send(path.request("POST /", "Content-Length: 10\r\n", "12345"));
    expect(await takeAnswer(path.client)).toMatchObject({ status: 200, body: "early" });
    await path.client.send("67890", path.request("GET /next"));
    while (!path.heard.includes("GET /next")) await sleep(5);
    expect(path.heard).toContain("1234567890GET /next");
  });

  test("a request behind a body that outlasted its answer comes after it", async () => {
    await using path = await openHttp((socket) => {
      socket.once("data", () => {
        socket.pause();
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly");
        setTimeout(() => socket.resume(), 200);
      });
    });
    path.client.socket.write(path.request("POST /", `Content-Length: ${BULK / 4}\r\n`));
    path.client.socket.write(Buffer.alloc(BULK / 4, "x"));
    path.client.socket.write(path.request("GET /1") + path.request("GET /2"));
    expect(await takeAnswer(path.client)).toMatchObject({ status: 200, body: "early" });
    const ends = (text: string): boolean => Buffer.concat(path.origin.heard.slice(-2)).toString("latin1").endsWith(text);
    const line = (number: number): string => `xGET /${number} HTTP/1.1\r\nHost: ${path.authority}\r\n\r\n`;
    while (!ends(line(1))) await sleep(20);
    path.origin.sockets[0]?.write(OK);
    expect(await takeAnswer(path.client)).toMatchObject({ status: 200, body: "ok" });
    while (!ends(line(2).slice(1))) await sleep(20);
    expect(path.origin.connections).toBe(1);
  });

  test("a connection that a slow client held up serves the next request", async () => {
    const large = "x".repeat(8_000_000);
    await using path = await openHttp(answering((head) => (head.includes("/large") ? `HTTP/1.1 200 OK\r\nContent-Length: ${large.length}\r\n\r\n${large}` : OK)));
    path.client.socket.pause();
    await path.client.send(path.request("GET /large"));
    await settle(() => path.client.socket.bytesRead);
    path.client.socket.resume();
    expect((await takeAnswer(path.client)).body.length).toBe(large.length);
    await path.client.send(path.request());
    expect(await takeAnswer(path.client)).toMatchObject({ status: 200, body: "ok" });
    expect(path.origin.connections).toBe(1);
  });

  test("a server that ends in the middle of its body is no whole answer: the client is told by a reset", async () => {
    await using path = await openHttp((socket) => void socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")));
    await path.client.send(path.request());
    await path.client.rest();
    expect(path.client.error).toMatchObject({ code: "ECONNRESET" });
  });

  test("a server that resets in the middle of a body without a length is no whole answer either", async () => {
    await using path = await openHttp((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n12345");
        setTimeout(() => socket.resetAndDestroy(), 50);
      });
    });
    await path.client.send(path.request());
    await path.client.rest();
    expect(path.client.error).toMatchObject({ code: "ECONNRESET" });
  });
});
