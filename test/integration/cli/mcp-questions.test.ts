import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Client, ElicitResult } from "@modelcontextprotocol/client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Answering, call, connect, listWaiting, makePlace, type Place, PROGRAM, run, until } from "./mcp-client.ts";

const hasScript = spawnSync("script", ["--version"], { stdio: "ignore" }).status === 0;

let place: Place;
let clients: Client[];
let file: string;

beforeEach(() => {
  place = makePlace();
  clients = [];
  file = path.join(place.folder, "a.txt");
  writeFileSync(file, "old");
});

afterEach(async () => {
  for (const client of clients) await client.close();
  place.remove();
});

async function open(answer?: Answering, argv: readonly string[] = ["--session", "q", "--grant", `${place.folder}:rwcd`]): Promise<Client> {
  const client = await connect(place, argv, { answer });
  clients.push(client);
  return client;
}

const auditOf = ({ home }: Place): string => readFileSync(path.join(home, ".agentbox/guard/q/audit.jsonl"), "utf8");
const audit = (): string => auditOf(place);
const overwrite = { path: "a.txt", content: "new" };

describe("a client with forms", () => {
  test("is asked in words that name the path, and offered no yes for good to what the guard asks itself", async () => {
    const shown: unknown[] = [];
    const client = await open(({ params }) => {
      shown.push(params);
      return { action: "decline" };
    });
    await call(client, "write_file", overwrite);
    expect(shown).toMatchObject([{ mode: "form", message: expect.stringContaining(JSON.stringify(file)), requestedSchema: { properties: { answer: { enum: ["no", "yes, this once", "yes, also whatever this rule asks again in this session"] } }, required: ["answer"] } }]);
  });

  test("is asked once where the yes is for the session", async () => {
    let asked = 0;
    const client = await open(() => {
      asked += 1;
      return { action: "accept", content: { answer: "yes, also whatever this rule asks again in this session" } };
    });
    for (const content of ["1", "2", "3"]) expect(await call(client, "write_file", { path: "a.txt", content })).toMatchObject({ isError: false });
    expect(asked).toBe(1);
  });

  test("takes a call back while a human thinks: nothing is done, the form goes away, and a later yes finds nothing", async () => {
    const { promise: shown, resolve: show } = Promise.withResolvers<void>();
    const { promise: late, resolve: answerLate } = Promise.withResolvers<void>();
    const client = await open(async () => {
      show();
      await late;
      return { action: "accept", content: { answer: "yes, this once" } };
    });
    const cancel = new AbortController();
    const ended = call(client, "write_file", overwrite, { signal: cancel.signal }).catch((error: unknown) => String(error));
    await shown;
    cancel.abort();
    expect(await ended).toMatch(/abort/i);
    await until(() => audit().includes('"answer":"denied"'));
    answerLate();
    expect(await call(client, "read_file", { path: "a.txt" })).toMatchObject({ data: { content: "old" } });
    await until(() => audit().includes('"refusal":"declined"'));
    expect(audit()).not.toContain('"answer":"approved"');
  });
});

describe("a client without forms", () => {
  test("waits in the queue, hears of it, and is denied there", async () => {
    const client = await open();
    const heard: string[] = [];
    const pending = call(client, "delete_file", { path: "a.txt" }, { onprogress: ({ message }) => heard.push(message ?? "") });
    const [id = ""] = await until(async () => {
      const waiting = await listWaiting(place);
      return waiting.length > 0 && waiting;
    });
    expect(await run(place, ["confirm", "deny", id])).toMatch(/denied/);
    expect(await pending).toMatchObject({ isError: true, data: { refusal: "declined" } });
    expect(heard[0]).toContain("agentbox confirm list");
    expect(existsSync(file)).toBe(true);
  });

  test.skipIf(!hasScript)("goes on after agentbox confirm approve on a terminal", async () => {
    const client = await open();
    const pending = call(client, "delete_file", { path: "a.txt" });
    const [id = ""] = await until(async () => {
      const waiting = await listWaiting(place);
      return waiting.length > 0 && waiting;
    });
    const terminal = spawn("script", ["--quiet", "--return", "--command", `'${process.execPath}' '${PROGRAM}' confirm approve ${id}`, "/dev/null"], { env: { ...place.env, TERM: "xterm" }, cwd: place.folder, stdio: ["pipe", "pipe", "inherit"] });
    let seen = "";
    terminal.stdout.on("data", (chunk: Buffer) => {
      seen += chunk.toString();
      if (!seen.includes("anything else: no")) return;
      seen = "";
      terminal.stdin.write("yes\r");
    });
    await once(terminal, "close");
    expect(await pending).toMatchObject({ isError: false, data: { confirmed: true } });
    expect(existsSync(file)).toBe(false);
  });

  test("leaves no question behind when the call is taken back", async () => {
    const client = await open();
    const cancel = new AbortController();
    const ended = call(client, "delete_file", { path: "a.txt" }, { signal: cancel.signal }).catch((error: unknown) => String(error));
    await until(async () => (await listWaiting(place)).length > 0);
    cancel.abort();
    expect(await ended).toMatch(/abort/i);
    await until(async () => (await listWaiting(place)).length === 0);
    expect(existsSync(file)).toBe(true);
  });
});

describe("what a client answers", () => {
  let shared: { place: Place; client: Client };
  let reply: unknown;

  beforeAll(async () => {
    const own = makePlace();
    shared = { place: own, client: await connect(own, ["--session", "q", "--grant", `${own.folder}:rw`], { answer: () => readReply(reply) }) };
  });

  afterAll(async () => {
    await shared.client.close();
    shared.place.remove();
  });

  test.each([
    { name: "a yes", reply: { action: "accept", content: { answer: "yes, this once" } }, done: true },
    { name: "no", reply: { action: "accept", content: { answer: "no" } }, done: false },
    { name: "a declined form", reply: { action: "decline" }, done: false },
    { name: "a dismissed form", reply: { action: "cancel" }, done: false },
    { name: "a form that is declined with a yes in it", reply: { action: "decline", content: { answer: "yes, this once" } }, done: false },
    { name: "a word that was not offered", reply: { action: "accept", content: { answer: "yes, always for this rule" } }, done: false },
    { name: "a truthy word", reply: { action: "accept", content: { answer: "yes" } }, done: false },
    { name: "true", reply: { action: "accept", content: { answer: true } }, done: false },
    { name: "a list with the word", reply: { action: "accept", content: { answer: ["yes, this once"] } }, done: false },
    { name: "an empty form", reply: { action: "accept", content: {} }, done: false },
    { name: "no form", reply: { action: "accept" }, done: false },
    { name: "a failure of the client", reply: undefined, done: false },
  ])("$name: done is $done", async ({ reply: given, done }) => {
    reply = given;
    const own = path.join(shared.place.folder, "a.txt");
    writeFileSync(own, "old");
    const result = await call(shared.client, "write_file", overwrite);
    expect(result).toMatchObject(done ? { isError: false, data: { confirmed: true } } : { isError: true, data: { refusal: "declined", ruleId: "invariant:overwrite" } });
    expect(readFileSync(own, "utf8")).toBe(done ? "new" : "old");
    expect(auditOf(shared.place).split("\n").at(-3)).toContain(done ? '"answer":"approved"' : '"answer":"denied"');
  });
});

/** Whatever a client may send; undefined breaks it. */
function readReply(reply: unknown): ElicitResult {
  if (reply === undefined) throw new Error("no screen");
  return JSON.parse(JSON.stringify(reply));
}
