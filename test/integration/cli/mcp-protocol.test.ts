import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { call, connect, listWaiting, makePlace, type Place, run, start, until } from "./mcp-client.ts";

let place: Place;

beforeEach(() => {
  place = makePlace();
  writeFileSync(path.join(place.folder, "a.txt"), "old");
});

afterEach(() => place.remove());

const grant = (letters = "rwcd"): string[] => ["--session", "p", "--grant", `${place.folder}:${letters}`];
const line = (message: unknown): string => `${JSON.stringify({ jsonrpc: "2.0", ...Object(message) })}\n`;
const HELLO = line({ id: 0, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } } }) + line({ method: "notifications/initialized" });
const callTool = (id: number, name: string, args: unknown): string => line({ id, method: "tools/call", params: { name, arguments: args } });
const audit = (session = "p"): string => readFileSync(path.join(place.home, ".agentbox/guard", session, "audit.jsonl"), "utf8");

/** The question got its no, and that is in the log. */
function expectUndone(): void {
  expect(existsSync(path.join(place.folder, "a.txt"))).toBe(true);
  expect(audit()).toMatch(/"kind":"confirmation".*"answer":"denied"[^]*"outcome":"refused"[^]*"event":"closed"/);
  expect(readdirSync(path.join(place.home, ".agentbox/guard/p/confirm")).filter((name) => name.endsWith(".json"))).toEqual([]);
}

describe("a server on stdin and stdout", () => {
  test("says nothing on stdout but the protocol, and ends with its stdin", async () => {
    const { child, out, err, closed } = start(place, grant());
    child.stdin.write(HELLO + callTool(1, "read_file", { path: "a.txt" }) + callTool(2, "read_file", { path: "/etc/passwd" }));
    await until(() => out().split("\n").length > 3);
    child.stdin.end();
    expect(await closed).toBe(0);
    const messages = out().trimEnd().split("\n").map((text): { id: number } => JSON.parse(text));
    expect(messages.toSorted((a, b) => a.id - b.id)).toMatchObject([{ jsonrpc: "2.0", id: 0 }, { id: 1, result: { structuredContent: { content: "old" } } }, { id: 2, result: { isError: true } }]);
    expect(err()).toBe(`agentbox: session p: ${JSON.stringify(place.folder)}\n`);
    expect(audit()).toContain('"event":"closed"');
  });

  test("goes on after what is no JSON, no message and no method", async () => {
    const { child, out, err, closed } = start(place, grant());
    child.stdin.write(`${HELLO}{"jsonrpc":\n[]\n"x"\n\n${line({ id: 5, method: "tools/destroy" })}${callTool(6, "no_such_tool", {})}${callTool(7, "read_file", { path: "a.txt" })}`);
    await until(() => out().includes('"id":7'));
    child.stdin.end();
    expect(await closed).toBe(0);
    expect(out()).toMatch(/"id":5,"error"|"error".*"id":5/);
    expect(out()).toContain('"content":"old"');
    expect(err()).toContain("the client: ");
  });

  test("ends at a message without an end, and is none the wiser for one that is just large", async () => {
    const { child, out, err, closed } = start(place, grant());
    child.stdin.write(HELLO + callTool(1, "write_file", { path: "large.txt", content: "x".repeat(9_000_000) }));
    await until(() => out().includes('"id":1'));
    expect(out()).toContain("Wrote 9000000 bytes");
    child.stdin.write("x".repeat(17 * 1024 * 1024));
    expect(await closed).toBe(64);
    expect(err()).toMatch(/the client: .*maximum/);
  });

  test.each(["SIGTERM", "SIGINT"] as const)("closes its session at %s, in the middle of a question", async (signal) => {
    const { child, out, closed } = start(place, grant());
    child.stdin.write(HELLO + callTool(1, "delete_file", { path: "a.txt" }));
    await until(async () => out() !== "" && (await listWaiting(place)).length > 0);
    child.kill(signal);
    expect(await closed).toBe(0);
    expectUndone();
  });

  test("closes its session when stdin ends in the middle of a question", async () => {
    const { child, out, closed } = start(place, grant());
    child.stdin.write(HELLO + callTool(1, "delete_file", { path: "a.txt" }));
    await until(async () => out() !== "" && (await listWaiting(place)).length > 0);
    child.stdin.end();
    expect(await closed).toBe(0);
    expectUndone();
    expect(await run(place, ["audit", "verify", "p"])).not.toMatch(/torn|broken/);
  });
});

describe("a start", () => {
  test("is refused while another has the session, and works with one of its own", async () => {
    const first = await connect(place, grant());
    const second = start(place, grant());
    expect(await second.closed).toBe(78);
    expect(second.err()).toMatch(/another process asks for this session already.*choose another --session/);
    expect(second.out()).toBe("");
    expect(await call(first, "read_file", { path: "a.txt" })).toMatchObject({ isError: false });
    const third = await connect(place, ["--grant", `${place.folder}:r`]);
    expect(await call(third, "read_file", { path: "a.txt" })).toMatchObject({ isError: false });
    await third.close();
    await first.close();
    expect(readdirSync(path.join(place.home, ".agentbox/guard")).filter((name) => /^mcp-\d{8}T\d{6}-\d+$/.test(name))).toHaveLength(1);
  });

  test.each([
    { name: "without any grant", argv: [], code: 64, said: /no folder is granted; expected --grant DIR:rw, or grants in \[sandbox\]/ },
    { name: "with the root of everything", argv: ["--grant", "/:r"], code: 77, said: /"\/" cannot be granted/ },
    { name: "with AgentBox's own directory", argv: ["--grant", "{home}/.agentbox:r"], code: 77, said: /cannot be granted/ },
    { name: "with a folder that is not there", argv: ["--grant", "nowhere:r"], code: 74, said: /does not exist/ },
    { name: "with a word that is no grant", argv: ["--grant", "x"], code: 64, said: /does not say what may be done there/ },
    { name: "with a socket among AgentBox's own files", argv: ["--grant", ".:r", "--socket", "{home}/.agentbox/s"], code: 64, said: /of which no box gets anything/ },
  ])("$name is refused on stderr", async ({ argv, code, said }) => {
    const { child, closed, out, err } = start(place, argv.map((word) => word.replace("{home}", place.home)));
    child.stdin.end();
    expect(await closed).toBe(code);
    expect(err()).toMatch(said);
    expect(out()).toBe("");
  });

  test("takes what an untrusted project says for nothing, and a trusted one's grants and rules", async () => {
    mkdirSync(path.join(place.folder, ".agentbox"));
    writeFileSync(path.join(place.folder, ".agentbox/config.toml"), '[sandbox]\ngrants = [{ root = "../outside", access = "r" }]\nrules = [{ id = "no-a", path = "a.txt", action = "deny" }]\n');
    writeFileSync(path.join(place.home, ".agentbox/config.toml"), `[sandbox]\ngrants = [{ root = ${JSON.stringify(place.folder)}, access = "r" }]\n`);
    for (const argv of [[], ["--grant", ".:r"]]) {
      const { child, closed, err } = start(place, argv);
      child.stdin.end();
      expect(await closed).toBe(78);
      expect(err()).toMatch(/you did not agree to this file yet.*agentbox policy trust/);
    }
    await run(place, ["policy", "trust"]);
    writeFileSync(path.join(place.outside, "a.txt"), "kept");
    const trusted = await connect(place, []);
    expect(await call(trusted, "read_file", { path: "canary" })).toMatchObject({ data: { content: "canary" } });
    expect(await call(trusted, "read_file", { path: "a.txt" })).toMatchObject({ data: { refusal: "rule", ruleId: "no-a" } });
    await trusted.close();
    const elsewhere = { ...place, folder: place.outside };
    const own = await connect(elsewhere, []);
    expect(await call(own, "read_file", { path: path.join(place.folder, "a.txt") })).toMatchObject({ isError: false });
    await own.close();
  });

  test("in the home directory goes by the user's own file, which needs no trust", async () => {
    writeFileSync(path.join(place.home, ".agentbox/config.toml"), `[sandbox]\ngrants = [{ root = ${JSON.stringify(place.folder)}, access = "r" }]\n`);
    const client = await connect({ ...place, folder: place.home }, []);
    expect(await call(client, "read_file", { path: "a.txt" })).toMatchObject({ data: { content: "old" } });
    expect(await call(client, "write_file", { path: "b.txt", content: "x" })).toMatchObject({ data: { refusal: "not-granted" } });
    await client.close();
  });
});
