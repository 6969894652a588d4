import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { Access } from "../../../../proxy/access/access.ts";
import { Dialler } from "../../../../proxy/access/dial.ts";
import { Flows } from "../../../../proxy/access/flows.ts";
import { DecisionLog, type WrittenLine } from "../../../../proxy/log/decision-log.ts";
import { LogFile } from "../../../../proxy/log/log-file.ts";
import { startWeb, type Web, type WebParts } from "../../../../proxy/web.ts";
import { makeAccessPolicy } from "../web-rig.ts";
import { findFreePort } from "./free-port.ts";

type Started = Disposable & { web: Web; log: DecisionLog; lines: WrittenLine[] };

function lookup() {
  return { ok: false as const, why: "no names here" };
}

async function start(parts: Pick<WebParts, "listeners"> & Partial<WebParts>): Promise<Started> {
  const dir = mkdtempSync(`${tmpdir()}/agentbox-connections-`);
  const lines: WrittenLine[] = [];
  const log = new DecisionLog(new LogFile(dir), { onLine: (line) => lines.push(line) });
  log.start("test");
  const access = new Access({ policy: makeAccessPolicy({ allow: [] }), lookup, log });
  try {
    const web = await startWeb({ access, flows: new Flows(access), dialler: new Dialler({ lookup }), ...parts });
    return {
      web,
      log,
      lines,
      [Symbol.dispose]: () => {
        web.close();
        log.close();
        rmSync(dir, { recursive: true });
      },
    };
  } catch (error) {
    log.close();
    rmSync(dir, { recursive: true });
    throw error;
  }
}

const none = { http: [], socks: [], plain: [], tls: [] };

async function isClosed(socket: Socket): Promise<void> {
  if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
}

test("one connection more than the bound is ended at once and written down, and there is room again when one goes", async () => {
  const port = await findFreePort();
  using rig = await start({ listeners: { ...none, http: [{ host: "127.0.0.1", port }] }, maxConnections: 2 });
  const open = async (): Promise<Socket> => {
    const socket = connect(port, "127.0.0.1").on("error", () => undefined);
    // One that is ended at once may never be seen to be connected.
    await new Promise((resolve) => socket.once("connect", resolve).once("close", resolve));
    return socket;
  };
  const [first, second] = [await open(), await open()];
  // Those two are served.
  second.write("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n");
  expect(String((await once(second, "data"))[0])).toMatch(/^HTTP\/1\.1 403 /);
  await isClosed(await open());
  await isClosed(await open());
  const limited = rig.lines.filter(({ entry }) => entry.kind === "event" && entry.event === "connections-limited");
  expect(limited.map(({ entry }) => (entry.kind === "event" ? entry.detail : ""))).toEqual(["1 connection was ended at once: 2 are open"]);
  first.destroy();
  await expect
    .poll(async () => {
      const socket = await open();
      socket.write("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n");
      const answer = await Promise.race([once(socket, "data").then(([bytes]) => String(bytes)), isClosed(socket).then(() => "closed")]);
      socket.destroy();
      return answer;
    })
    .toMatch(/^HTTP\/1\.1 403 /);
});

test("where one of the listeners cannot be had, none is left", async () => {
  const [port, taken] = [await findFreePort(), await findFreePort()];
  using _other = await start({ listeners: { ...none, socks: [{ host: "127.0.0.1", port: taken }] } });
  const listeners = { ...none, http: [{ host: "127.0.0.1", port }], socks: [{ host: "127.0.0.1", port: taken }] };
  await expect(start({ listeners })).rejects.toMatchObject({ code: "EADDRINUSE", port: taken });
  const [error] = await once(connect(port, "127.0.0.1"), "error");
  expect(error).toMatchObject({ code: "ECONNREFUSED" });
});
