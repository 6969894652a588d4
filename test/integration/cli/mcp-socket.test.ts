import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { connect as openSocket, createServer } from "node:net";
import path from "node:path";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { attach, call, listWaiting, makePlace, type Place, run, start, until } from "./mcp-client.ts";

/** The bridge of docs/sandbox.md: what an agent's client in a box starts. */
const BRIDGE = 'const s=require("node:net").connect(process.argv[1]);s.on("close",()=>process.exit());process.stdin.pipe(s).pipe(process.stdout)';

let place: Place;
let socket: string;
let server: ReturnType<typeof start> | undefined;

beforeEach(() => {
  place = makePlace();
  socket = path.join(path.dirname(place.home), "sock/guard.sock");
  writeFileSync(path.join(place.folder, "a.txt"), "old");
});

afterEach(async () => {
  server?.child.kill("SIGKILL");
  await server?.closed;
  server = undefined;
  place.remove();
});

async function serve(): Promise<void> {
  const begun = start(place, ["--session", "s", "--grant", `${place.folder}:rwcd`, "--socket", socket]);
  server = begun;
  await until(() => existsSync(socket) || begun.child.exitCode !== null);
}

const bridge = (): StdioClientTransport => new StdioClientTransport({ command: process.execPath, args: ["-e", BRIDGE, socket], env: place.env });

describe("a socket", () => {
  test("is the owner's alone, and serves several clients in one session until a signal", async () => {
    await serve();
    expect([statSync(socket).mode & 0o777, statSync(path.dirname(socket)).mode & 0o777]).toEqual([0o600, 0o700]);
    const [first, second] = [await attach(bridge()), await attach(bridge())];
    expect(await call(first, "write_file", { path: "b.txt", content: "shared" })).toMatchObject({ isError: false });
    expect(await call(second, "read_file", { path: "b.txt" })).toMatchObject({ data: { content: "shared" } });
    expect(await call(second, "read_file", { path: "../outside/canary" })).toMatchObject({ isError: true, data: { refusal: "outside-roots" } });
    await first.close();
    expect((await call(second, "end_task")).data).toMatchObject({ read: [path.join(place.folder, "b.txt")], created: expect.anything() });
    server?.child.kill("SIGTERM");
    expect(await server?.closed).toBe(0);
    expect(existsSync(socket)).toBe(false);
    expect(server?.out()).toBe("");
  });

  test("does not take an agent's word for a human's: a client that answers forms itself is asked nothing, the queue is", async () => {
    await serve();
    let asked = 0;
    const client = await attach(bridge(), () => {
      asked += 1;
      return { action: "accept", content: { answer: "yes, this once" } };
    });
    const pending = call(client, "delete_file", { path: "a.txt" });
    const [id = ""] = await until(async () => {
      const waiting = await listWaiting(place);
      return waiting.length > 0 && waiting;
    });
    await run(place, ["confirm", "deny", id]);
    expect(await pending).toMatchObject({ isError: true, data: { refusal: "declined" } });
    expect(asked).toBe(0);
    expect(existsSync(path.join(place.folder, "a.txt"))).toBe(true);
    await client.close();
  });

  test("loses nothing but the calls of a client that goes away in the middle of one", async () => {
    await serve();
    const [leaves, stays] = [await attach(bridge()), await attach(bridge())];
    const ended = call(leaves, "delete_file", { path: "a.txt" }).catch((error: unknown) => String(error));
    await until(async () => (await listWaiting(place)).length > 0);
    await leaves.close();
    expect(await ended).toMatch(/closed/i);
    await until(async () => (await listWaiting(place)).length === 0);
    expect(await call(stays, "read_file", { path: "a.txt" })).toMatchObject({ data: { content: "old" } });
    await stays.close();
  });

  test("sends away who asks for much and reads nothing, and serves others on", async () => {
    await serve();
    writeFileSync(path.join(place.folder, "big"), "x".repeat(4 * 1024 * 1024));
    const greedy = openSocket(socket).pause();
    const gone = new Promise((resolve) => void greedy.once("close", resolve));
    const asks = Array.from({ length: 12 }, (_none, id) => ({ id, method: "tools/call", params: { name: "read_file", arguments: { path: "big", length: 4 * 1024 * 1024 } } }));
    const messages = [{ id: "hello", method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "greedy", version: "1" } } }, { method: "notifications/initialized" }, ...asks];
    greedy.on("error", () => undefined).write(messages.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join(""));
    // A socket that is not read tells nothing of its end, but writing to it does.
    await until(() => {
      greedy.write("\n");
      return greedy.destroyed;
    });
    await gone;
    const client = await attach(bridge());
    expect(await call(client, "read_file", { path: "a.txt" })).toMatchObject({ data: { content: "old" } });
    await client.close();
  });

  test("of a killed server is replaced", async () => {
    await serve();
    server?.child.kill("SIGKILL");
    await server?.closed;
    expect(lstatSync(socket).isSocket()).toBe(true);
    const again = start(place, ["--session", "s2", "--grant", `${place.folder}:r`, "--socket", socket]);
    server = again;
    await until(() => again.err().includes("session s2"));
    const client = await until(async () => await attach(bridge()).catch(() => undefined));
    expect(await call(client, "read_file", { path: "a.txt" })).toMatchObject({ isError: false });
    await client.close();
  });
});

async function begin(): Promise<{ code: number | null; err: string }> {
  const begun = start(place, ["--session", "x", "--grant", `${place.folder}:r`, "--socket", socket]);
  server = begun;
  return { code: await begun.closed, err: begun.err() };
}

describe("a path for a socket", () => {
  test.each([
    { name: "is a file", plant: () => writeFileSync(socket, "mine"), said: /is there already, and no socket of yours/ },
    { name: "is a link", plant: () => symlinkSync(path.join(place.outside, "canary"), socket), said: /is there already, and no socket of yours/ },
    { name: "is a directory", plant: () => mkdirSync(socket), said: /is there already, and no socket of yours/ },
    { name: "is in a directory that others may use", plant: () => chmodSync(path.dirname(socket), 0o755), said: /may be used by others/ },
  ])("that $name is refused and left", async ({ plant, said }) => {
    mkdirSync(path.dirname(socket), { mode: 0o700 });
    plant();
    expect(await begin()).toMatchObject({ code: 64, err: expect.stringMatching(said) });
    expect(readFileSync(path.join(place.outside, "canary"), "utf8")).toBe("canary");
  });

  test("that another process serves is refused and left", async () => {
    mkdirSync(path.dirname(socket), { mode: 0o700 });
    const other = createServer();
    await new Promise<void>((resolve) => void other.listen(socket, resolve));
    expect(await begin()).toMatchObject({ code: 64, err: expect.stringMatching(/is served by another process/) });
    expect(other.listening && existsSync(socket)).toBe(true);
    await new Promise((resolve) => void other.close(resolve));
  });

  test("that no address can hold is refused", async () => {
    socket = path.join(path.dirname(socket), "x".repeat(120));
    expect(await begin()).toMatchObject({ code: 64, err: expect.stringMatching(/too long for a socket/) });
  });
});
