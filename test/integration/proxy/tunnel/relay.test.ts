import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { makeHello, makeMessage, makeRecords } from "../../../lab/client-hello.ts";
import type { OriginManner } from "./origin.ts";
import type { Way } from "./passages.ts";
import { HOST, openPath, silent, waitFor } from "./path.ts";

const ALERT = Buffer.from([21, 3, 3, 0, 2, 2, 49]);
const BULK = 64 * 1024 * 1024;

describe.each<Way>(["connect", "socks", "tls"])("a tunnel by %s", (way) => {
  const first = makeHello({ sni: HOST });

  test("passes a hello that comes byte by byte", async () => {
    await using path = await openPath(way);
    await path.client.trickle(first);
    expect(await path.client.take(first.length)).toEqual(first);
  });

  test("passes a hello in many records, as it came", async () => {
    await using path = await openPath(way);
    const records = makeRecords(makeMessage({ sni: HOST }), { size: 3 });
    await path.client.send(records.subarray(0, 50), records.subarray(50, 333), records.subarray(333));
    expect(await path.client.take(records.length)).toEqual(records);
  });

  test("refuses another name in a hello that comes byte by byte", async () => {
    await using path = await openPath(way);
    await path.client.trickle(makeHello({ sni: "b.example.com" }));
    expect(await path.client.rest()).toEqual(ALERT);
    expect(path.origin.heard).toEqual([]);
    expect(await waitFor(path.rig, "decision")).toBeDefined();
  });

  test("refuses a hello that stays half, and hands none of it on", async () => {
    await using path = await openPath(way);
    await path.client.send(first.subarray(0, 60));
    await path.client.rest();
    expect(path.origin.heard).toEqual([]);
    const reasons = path.rig.readLog().flatMap((record) => (record.kind === "decision" && record.action === "deny" ? [record.detail] : []));
    expect(reasons).toEqual([expect.stringContaining("not whole after 5 s")]);
  });

  test("refuses a hello that ends half", async () => {
    await using path = await openPath(way);
    path.client.socket.end(first.subarray(0, 60));
    expect(await path.client.rest()).toEqual(ALERT);
    expect(path.origin.heard).toEqual([]);
  });

  test("goes on in one direction when the client has ended the other", async () => {
    await using path = await openPath(way, silent);
    path.client.socket.end(first);
    while (path.origin.heard.length === 0) await new Promise((resolve) => void setTimeout(resolve, 5));
    if (!path.server.readableEnded) await once(path.server, "end");
    path.server.end("the last words");
    expect((await path.client.rest()).toString()).toBe("the last words");
    expect(Buffer.concat(path.origin.heard)).toEqual(first);
  });

  test("goes on in the other direction when the server has ended its own", async () => {
    await using path = await openPath(way, (socket) => void socket.end("hello and goodbye"));
    await path.client.send(first);
    expect((await path.client.rest()).toString()).toBe("hello and goodbye");
    await path.client.send("still here");
    path.client.socket.end();
    await once(path.server, "end");
    expect(Buffer.concat(path.origin.heard).subarray(first.length).toString()).toBe("still here");
  });

  test("hands a reset of the client on", async () => {
    await using path = await openPath(way);
    await path.client.send(first);
    await path.client.take(first.length);
    const closed = new Promise<void>((resolve) => void path.server.once("close", () => resolve()));
    path.client.socket.resetAndDestroy();
    await closed;
    expect(path.server.errored).toMatchObject({ code: "ECONNRESET" });
  });

  test("hands a reset of the server on", async () => {
    await using path = await openPath(way);
    await path.client.send(first);
    await path.client.take(first.length);
    path.server.resetAndDestroy();
    await path.client.rest();
    expect(path.client.error?.code).toBe("ECONNRESET");
  });

  test("writes down what it carried", async () => {
    await using path = await openPath(way);
    await path.client.send(first, "0123456789");
    await path.client.take(first.length + 10);
    path.client.socket.end();
    await path.client.rest();
    path.rig.context.access.log.close();
    expect(await waitFor(path.rig, "traffic")).toMatchObject({ host: HOST, port: path.origin.port, bytesUp: first.length + 10, bytesDown: first.length + 10, flows: 1, cut: false });
  });

  test("is cut by a policy that does not let it through, and that is written down", async () => {
    await using path = await openPath(way);
    await path.client.send(first);
    await path.client.take(first.length);
    path.rig.replace({ allow: [`b.example.com:${path.origin.port}`] });
    await path.client.rest();
    expect(path.client.error?.code).toBe("ECONNRESET");
    path.rig.context.access.log.close();
    expect(await waitFor(path.rig, "traffic")).toMatchObject({ host: HOST, cut: true });
    expect(path.rig.readLog()).toContainEqual(expect.objectContaining({ kind: "decision", action: "deny", reason: "not_allowed", host: HOST }));
  });

  test("stays open over a policy that lets it through", async () => {
    await using path = await openPath(way);
    await path.client.send(first);
    await path.client.take(first.length);
    path.rig.replace({ allow: ["b.example.com", `*.example.com:${path.origin.port}`] });
    await path.client.send("still");
    expect((await path.client.take(5)).toString()).toBe("still");
  });

  test("carries 64 MiB in both directions at once, unchanged", async () => {
    await using path = await openPath(way);
    const block = randomBytes(1024 * 1024);
    const [sent, heard] = [createHash("sha256"), createHash("sha256")];
    await path.client.send(first);
    await path.client.take(first.length);
    const { socket } = path.client;
    socket.removeAllListeners("data");
    let count = 0;
    const all = new Promise<void>((resolve) => {
      socket.on("data", (bytes: Buffer) => {
        heard.update(bytes);
        count += bytes.length;
        if (count === BULK) resolve();
      });
    });
    for (let at = 0; at < BULK; at += block.length) {
      block.writeUInt32BE(at, 0);
      sent.update(block);
      if (!socket.write(Buffer.from(block))) await once(socket, "drain");
    }
    await all;
    expect(heard.digest("hex")).toBe(sent.digest("hex"));
  });

  test("makes a fast server wait for a client that does not read, and loses nothing", async () => {
    const block = randomBytes(256 * 1024);
    const send: OriginManner = (socket) => {
      let left = BULK / block.length;
      const more = (): void => {
        while (left > 0 && socket.write(block)) left -= 1;
        if (left > 0) left -= 1;
        else socket.end();
      };
      socket.on("drain", more);
      socket.once("data", more);
    };
    await using path = await openPath(way, send);
    path.client.socket.pause();
    path.client.socket.write(first);
    let before = -1;
    // It stands still once every buffer on the way is full.
    while (path.origin.sockets[0] === undefined || before < path.server.bytesWritten) {
      before = path.origin.sockets[0] === undefined ? -1 : path.server.bytesWritten;
      await new Promise((resolve) => void setTimeout(resolve, 300));
    }
    expect(path.server.bytesWritten).toBeLessThan(BULK / 2);
    path.client.socket.removeAllListeners("data");
    let count = 0;
    path.client.socket.on("data", (bytes: Buffer) => (count += bytes.length));
    path.client.socket.resume();
    await path.client.rest();
    expect(count).toBe(Math.floor(BULK / block.length) * block.length);
  });
});

describe.each<"connect" | "socks">(["connect", "socks"])("a tunnel by %s whose client has said nothing yet", (way) => {
  test("carries what the server says first", async () => {
    await using path = await openPath(way, (socket) => void socket.write("220 mail.example.com\r\n"));
    expect((await path.client.take(22)).toString()).toBe("220 mail.example.com\r\n");
    await path.client.send("EHLO box\r\n");
    while (path.origin.heard.length === 0) await new Promise((resolve) => void setTimeout(resolve, 5));
    expect(Buffer.concat(path.origin.heard).toString()).toBe("EHLO box\r\n");
  });

  test("carries the whole answer of a server to a client that ends at once", async () => {
    await using path = await openPath(way, (socket) => void socket.on("end", () => socket.end("nobody asked")));
    path.client.socket.end();
    expect((await path.client.rest()).toString()).toBe("nobody asked");
  });

  test("hands a line on that ends without a line end", async () => {
    await using path = await openPath(way);
    path.client.socket.end("ping");
    expect((await path.client.rest()).toString()).toBe("ping");
  });

  test("refuses a line that stays half, since it may become a request", async () => {
    await using path = await openPath(way);
    await path.client.send("GET / HT");
    await path.client.rest();
    expect(path.origin.heard).toEqual([]);
  });

  test("is cut by a new policy too", async () => {
    await using path = await openPath(way);
    path.rig.replace({ allow: [] });
    await path.client.rest();
    expect(path.client.error?.code).toBe("ECONNRESET");
  });

  test("ends with its server", async () => {
    await using path = await openPath(way);
    path.server.resetAndDestroy();
    await path.client.rest();
    expect(path.client.error?.code).toBe("ECONNRESET");
  });
});
