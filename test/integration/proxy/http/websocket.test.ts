import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { OriginManner } from "../tunnel/origin.ts";
import { makeBulk } from "./bulk.ts";
import { answering, openHttp, takeAnswer } from "./http-rig.ts";

const UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n";
const accepting: OriginManner = (socket) => {
  socket.once("data", () => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: y\r\n\r\nfirst");
    socket.on("data", (bytes: Buffer) => socket.write(bytes));
  });
  socket.on("end", () => socket.end("last"));
};

describe("WebSocket", () => {
  test("is a channel in both directions from then on", async () => {
    await using path = await openHttp(accepting);
    await path.client.send(path.request("GET /socket", UPGRADE));
    expect(await path.client.takeHead()).toBe("HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: y\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    expect((await path.client.take(5)).toString()).toBe("first");
    expect(path.heard).toContain("\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n");
    // Not a request any more, though it looks like one.
    const frame = "GET http://evil.example.org/ HTTP/1.1\r\n\r\n";
    await path.client.send(frame);
    expect((await path.client.take(frame.length)).toString()).toBe(frame);
    path.client.socket.end();
    expect((await path.client.rest()).toString()).toBe("last");
  });

  test("carries 8 MiB intact", async () => {
    await using path = await openHttp(accepting);
    await path.client.send(path.request("GET /socket", UPGRADE));
    await path.client.takeHead();
    await path.client.take(5);
    const bulk = makeBulk(8 * 1024 * 1024);
    await path.client.send(bulk);
    expect((await path.client.take(bulk.length)).equals(bulk)).toBe(true);
  });

  test("takes along what the client sent too early", async () => {
    await using path = await openHttp(accepting);
    await path.client.send(path.request("GET /socket", UPGRADE), "early");
    await path.client.takeHead();
    expect((await path.client.take(10)).toString()).toBe("firstearly");
  });

  test("is written down with what it carried", async () => {
    await using path = await openHttp(accepting);
    const request = path.request("GET /socket", UPGRADE);
    await path.client.send(request);
    const head = await path.client.takeHead();
    await path.client.take(5);
    await path.client.send("12345678");
    await path.client.take(8);
    path.client.socket.end();
    await path.client.rest();
    while (path.rig.context.flows.size > 0) await sleep(5);
    path.rig.context.access.log.close();
    expect(path.rig.readLog()).toContainEqual(expect.objectContaining({ kind: "traffic", bytesUp: request.length + 8, bytesDown: head.length + 5 + 8 + 4, flows: 1 }));
  });

  test("that the server does not want is an ordinary answer", async () => {
    await using path = await openHttp();
    await path.client.send(path.request("GET /socket", UPGRADE) + path.request());
    expect([(await takeAnswer(path.client)).status, (await takeAnswer(path.client)).status]).toEqual([200, 200]);
  });

  const wrong: readonly [row: string, fields: string, answer: string][] = [
    ["nobody asked for it", "", "Connection: Upgrade\r\nUpgrade: websocket\r\n"],
    ["another protocol was asked for, which was not passed on", "Connection: Upgrade\r\nUpgrade: h2c\r\n", "Connection: Upgrade\r\nUpgrade: h2c\r\n"],
    ["the server changes to another", UPGRADE, "Connection: Upgrade\r\nUpgrade: h2c\r\n"],
    ["the server does not say to what", UPGRADE, ""],
  ];
  test.each(wrong)("a change of protocol is 502 where %s", async (_row, fields, answer) => {
    await using path = await openHttp(answering(`HTTP/1.1 101 Switching Protocols\r\n${answer}\r\n`));
    await path.client.send(path.request("GET /socket", fields));
    expect(await takeAnswer(path.client)).toMatchObject({ status: 502 });
    expect(path.heard).not.toContain("h2c");
  });
});
