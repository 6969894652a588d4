import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { RawClient } from "../tunnel/raw-client.ts";
import { HOST, listDecisions, OK, openHttp, settle, takeAnswer } from "./http-rig.ts";

/** Longer than a head may take. */
const LONG_MS = 13_000;

describe("limits", () => {
  test("a head has ten seconds, everything else has time", { timeout: 40_000 }, async () => {
    await using path = await openHttp((socket) => {
      let heard = "";
      socket.on("data", (bytes: Buffer) => {
        heard += bytes.toString("latin1");
        if (!heard.endsWith(heard.startsWith("POST") ? "last" : "\r\n\r\n")) return;
        setTimeout(() => socket.write(OK), heard.includes("/slow") ? LONG_MS : 0);
        heard = "";
      });
    });
    const open = (): Promise<RawClient> => RawClient.open(path.rig.port);
    await using idle = path.client;
    await using silent = await open();
    await using stuck = await open();
    await using dripping = await open();
    await using waiting = await open();
    await using uploading = await open();
    await using other = await open();
    await idle.send(path.request());
    await takeAnswer(idle);
    await stuck.send(path.request().slice(0, -10));
    await waiting.send(path.request("GET /slow"));
    await uploading.send(path.request("POST /", "Content-Length: 8\r\n", "firs"));
    const drip = setInterval(() => dripping.socket.destroyed || dripping.socket.write("G"), 500);
    await sleep(LONG_MS / 2);
    await other.send(path.request());
    expect((await takeAnswer(other)).status).toBe(200);
    await sleep(LONG_MS / 2);
    expect((await takeAnswer(stuck)).status).toBe(408);
    // Its method is too long to be one before its time is over.
    expect((await takeAnswer(dripping)).status).toBe(408);
    clearInterval(drip);
    expect((await silent.rest()).toString()).toBe("");
    await uploading.send("last");
    expect((await takeAnswer(uploading)).status).toBe(200);
    expect((await takeAnswer(waiting)).status).toBe(200);
    await idle.send(path.request());
    expect((await takeAnswer(idle)).status).toBe(200);
    expect([...new Set(listDecisions(path.rig.readLog()))].toSorted()).toEqual([`allow allowed GET ${HOST}`, `allow allowed POST ${HOST}`, 'deny denied - "(malformed request)"']);
  });

  test("a head has 64 KiB: 431, and others are served meanwhile", async () => {
    await using path = await openHttp((socket) => void socket.on("data", () => socket.write(OK)));
    await using other = await RawClient.open(path.rig.port);
    await path.client.send(path.request("GET /", `X: ${"x".repeat(60_000)}`).trimEnd());
    await other.send(path.request());
    expect((await takeAnswer(other)).status).toBe(200);
    await path.client.send("x".repeat(10_000));
    expect(await takeAnswer(path.client)).toMatchObject({ status: 431 });
    await path.client.rest();
    expect(path.rig.readLog().at(-1)).toMatchObject({ action: "deny", host: '"(malformed request)"', detail: expect.stringContaining("larger than") });
  });

  test("a head of 64 KiB is let through", async () => {
    await using path = await openHttp((socket) => {
      let heard = "";
      socket.on("data", (bytes: Buffer) => {
        heard += bytes.toString("latin1");
        if (heard.endsWith("\r\n\r\n")) socket.write(OK);
      });
    });
    const fill = 65_536 - path.request("GET /", "X: \r\n").length;
    await path.client.send(path.request("GET /", `X: ${"x".repeat(fill)}\r\n`));
    expect((await takeAnswer(path.client)).status).toBe(200);
  });

  test("clients that ask and ask and read no answer wait; others do not", async () => {
    await using path = await openHttp((socket) => void socket.on("data", () => socket.write(OK)));
    await using other = await RawClient.open(path.rig.port);
    path.client.socket.pause();
    const refused = "GET http://evil.example.org/ HTTP/1.1\r\nHost: evil.example.org\r\n\r\n".repeat(1000);
    for (let count = 0; count < 400; count += 1) path.client.socket.write(refused);
    expect(await settle(() => path.client.socket.writableLength)).toBeGreaterThan(0);
    await other.send(path.request());
    expect((await takeAnswer(other)).status).toBe(200);
  });

  test("300 clients that reset in the middle of anything leave nothing behind", async () => {
    await using path = await openHttp((socket) => void socket.on("data", () => socket.write(OK)));
    const whole = path.request("POST /", "Content-Length: 4\r\n", "body");
    for (let count = 0; count < 300; count += 1) {
      await using client = await RawClient.open(path.rig.port);
      client.socket.write(whole.slice(0, (count * 7) % whole.length));
      await new Promise((resolve) => void setImmediate(resolve));
      client.socket.resetAndDestroy();
    }
    await path.client.send(path.request());
    expect((await takeAnswer(path.client)).status).toBe(200);
    while (path.rig.context.flows.size > 0) await sleep(5);
  });
});
