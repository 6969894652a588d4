import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, connect, listWaiting, makePlace, type Place, run, until } from "./mcp-client.ts";

const YES = "yes, this once";

let place: Place;
let client: Client;
/** What the client's human answers, and what was asked. */
let answer = YES;
let asked: string[] = [];

const CONFIG = `
[sandbox]
rules = [
  { id = "no-keys", path = "**", extension = [".key"], action = "deny" },
  { id = "ask-ci", path = "ci/**", action = "confirm" },
]
grants = [{ root = "../work", access = "rwcd", trash = true }, { root = "../second", access = "r" }, { root = "../third", access = "rwcd" }]
quota_bytes = 3000000
`;

beforeAll(async () => {
  place = makePlace();
  writeFileSync(path.join(place.home, ".agentbox/config.toml"), CONFIG.replaceAll("../", `${path.dirname(place.home)}/`));
  for (const name of ["second", "third"]) mkdirSync(path.join(path.dirname(place.home), name));
  writeFileSync(path.join(path.dirname(place.home), "second/other.txt"), "other");
  client = await connect(place, ["--session", "tools"], {
    answer: ({ params }) => {
      asked.push(params.message);
      return { action: "accept", content: { answer } };
    },
  });
});

afterAll(async () => {
  await client.close();
  place.remove();
});

const at = (name: string): string => path.join(place.folder, name);
const seed = (name: string, content: string | Uint8Array = "old"): string => {
  mkdirSync(path.dirname(at(name)), { recursive: true });
  writeFileSync(at(name), content);
  return at(name);
};

describe("each tool", () => {
  test("is described for a model, and says whether it changes anything", async () => {
    const { tools } = await client.listTools();
    expect(tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint])).toEqual([
      ["read_file", true], ["write_file", false], ["list_files", true], ["move_file", false], ["delete_file", false],
      ["create_directory", false], ["restore_file", false], ["preview_operations", true], ["end_task", false],
    ]);
    for (const { description, inputSchema } of tools) {
      expect(description?.length).toBeGreaterThan(100);
      expect(inputSchema).toMatchObject({ type: "object", additionalProperties: false });
    }
    expect(client.getInstructions()).toContain(JSON.stringify(place.folder));
  });

  test.each([
    { name: "read_file reads text", tool: "read_file", args: { path: "hello.txt" }, data: { encoding: "utf-8", content: "héllo", size: 6, truncated: false }, text: /^héllo$/ },
    { name: "read_file reads what is no text as base64", tool: "read_file", args: { path: "bytes" }, data: { encoding: "base64", content: "/wD+" }, text: /base64:\n\/wD\+$/ },
    { name: "write_file makes a file", tool: "write_file", args: { path: "made.txt", content: "new" }, data: { size: 3, confirmed: false }, text: /^Wrote 3 bytes/ },
    { name: "write_file takes base64", tool: "write_file", args: { path: "made.bin", content: "/wD+", encoding: "base64" }, data: { size: 3 }, text: /^Wrote 3 bytes/ },
    { name: "write_file replaces after a yes", tool: "write_file", args: { path: "replaced.txt", content: "new" }, data: { confirmed: true, tags: ["overwrite"] }, text: /^Wrote/ },
    { name: "list_files lists", tool: "list_files", args: { path: "list" }, data: { entries: [{ name: "a", kind: "file", size: 3 }], truncated: false }, text: /file 3 "a"/ },
    { name: "move_file moves after a yes", tool: "move_file", args: { path: "from.txt", destinationPath: "list/../to.txt" }, data: { confirmed: true }, text: /^Moved/ },
    { name: "move_file renames after a yes", tool: "move_file", args: { path: "name.txt", destinationPath: "renamed.txt", intent: "rename" }, data: { confirmed: true }, text: /^Renamed/ },
    { name: "create_directory makes one", tool: "create_directory", args: { path: "fresh" }, data: { intent: "create" }, text: /^Made/ },
    { name: "preview_operations sums up", tool: "preview_operations", args: { operations: [{ intent: "read", path: "hello.txt" }, { intent: "delete", path: "hello.txt" }] }, data: { decision: "confirm", tags: ["delete"] }, text: /^All together: confirm; risks: delete/ },
  ])("$name", async ({ tool, args, data, text }) => {
    answer = YES;
    for (const name of ["hello.txt", "replaced.txt", "list/a", "from.txt", "name.txt"]) if (!existsSync(at(name))) seed(name);
    seed("hello.txt", "héllo");
    seed("bytes", Uint8Array.of(0xff, 0, 0xfe));
    const result = await call(client, tool, args);
    expect(result).toMatchObject({ isError: false, data, text: expect.stringMatching(text) });
  });

  test.each([
    { name: "read_file outside", tool: "read_file", args: { path: "../outside/canary" }, data: { refusal: "outside-roots" } },
    { name: "read_file of what a rule denies", tool: "read_file", args: { path: "my.key" }, data: { refusal: "rule", ruleId: "no-keys" } },
    { name: "read_file through a link", tool: "read_file", args: { path: "link" }, data: { refusal: "link" } },
    { name: "read_file of a hidden file", tool: "read_file", args: { path: ".env" }, data: { refusal: "hidden" } },
    { name: "write_file without the grant", tool: "write_file", args: { path: "{second}/new", content: "x" }, data: { refusal: "not-granted" } },
    { name: "write_file beyond the quota", tool: "write_file", args: { path: "huge", content: "{huge}" }, data: { refusal: "quota" } },
    { name: "write_file of torn Unicode", tool: "write_file", args: { path: "torn", content: "\ud800" }, data: { outcome: "malformed" } },
    { name: "write_file of no base64", tool: "write_file", args: { path: "torn", content: "a!", encoding: "base64" }, data: { outcome: "malformed" } },
    { name: "write_file that shall create and would replace", tool: "write_file", args: { path: "hello.txt", content: "x", intent: "create" }, data: { outcome: "failed", code: "EEXIST" } },
    { name: "list_files outside", tool: "list_files", args: { path: "/" }, data: { refusal: "outside-roots" } },
    { name: "move_file into another folder", tool: "move_file", args: { path: "hello.txt", destinationPath: "{third}/x" }, data: { refusal: "cross-root" } },
    { name: "delete_file that is declined", tool: "delete_file", args: { path: "hello.txt" }, data: { refusal: "declined", ruleId: "invariant:delete" } },
    { name: "create_directory outside", tool: "create_directory", args: { path: "{outside}/d" }, data: { refusal: "outside-roots" } },
    { name: "restore_file of nothing", tool: "restore_file", args: { trashId: "t1" }, data: { outcome: "failed", code: "ENOENT" } },
    { name: "read_file of what is not there", tool: "read_file", args: { path: "nothing" }, data: { outcome: "failed", code: "ENOENT" } },
  ])("$name is refused in words", async ({ tool, args, data }) => {
    answer = "no";
    seed("hello.txt", "héllo");
    seed("my.key");
    seed(".env");
    if (!existsSync(at("link"))) symlinkSync(path.join(place.outside, "canary"), at("link"));
    const filled: unknown = JSON.parse(JSON.stringify(args).replaceAll(/\{(second|third)\}/g, (_match, name: string) => path.join(path.dirname(place.home), name)).replaceAll("{outside}", place.outside).replaceAll("{huge}", "x".repeat(4_000_000)));
    const result = await call(client, tool, Object.fromEntries(Object.entries(filled ?? {})));
    expect(result).toMatchObject({ isError: true, data: { what: expect.stringMatching(/./), fix: expect.stringMatching(/./), ...data } });
    expect(result.text).toMatch(/What to do: \S/);
    expect(result.text).not.toContain("canary\n");
    expect(readFileSync(at("hello.txt"), "utf8")).toBe("héllo");
  });

  test("preview_operations does not do what it tells, and looks at nothing outside", async () => {
    asked = [];
    const file = seed("kept.txt");
    const operations = [{ intent: "delete", path: "kept.txt" }, { intent: "read", path: path.join(place.outside, "canary") }];
    expect((await call(client, "preview_operations", { operations })).data).toMatchObject({ decision: "deny", verdicts: [{ decision: "confirm", ruleId: "invariant:delete" }, { decision: "deny" }] });
    expect(existsSync(file)).toBe(true);
    expect(asked).toEqual([]);
    expect(await call(client, "preview_operations", { operations: [] })).toMatchObject({ isError: true });
  });

  test("delete_file puts into the trash, and restore_file brings back", async () => {
    answer = YES;
    const file = seed("gone.txt", "dear");
    const { data } = await call(client, "delete_file", { path: "gone.txt" });
    expect(existsSync(file)).toBe(false);
    expect(await call(client, "restore_file", { trashId: data["trashId"] })).toMatchObject({ isError: false, data: { path: file } });
    expect(readFileSync(file, "utf8")).toBe("dear");
  });

  test("end_task sums up what was done, and the log verifies", async () => {
    seed("hello.txt", "héllo");
    await call(client, "read_file", { path: "hello.txt", taskId: "t7" });
    await call(client, "read_file", { path: "/etc/passwd", taskId: "t7" });
    expect((await call(client, "end_task", { taskId: "t7" })).data).toMatchObject({ taskId: "t7", read: [at("hello.txt")], refused: [{ path: "/etc/passwd", reason: "outside-roots" }], bytesRead: 6 });
    expect(await call(client, "end_task", { taskId: "../x" })).toMatchObject({ isError: true });
    expect(await run(place, ["audit", "verify", "tools"])).toMatch(/holds|proves|whole/);
  });
});

describe("a rule that asks", () => {
  test("is answered for good, and asks no more, where it is the user's own", async () => {
    mkdirSync(at("ci"));
    asked = [];
    answer = "no";
    expect(await call(client, "write_file", { path: "ci/a", content: "1" })).toMatchObject({ data: { refusal: "declined", ruleId: "ask-ci" } });
    answer = "yes, always for this rule";
    for (const name of ["a", "b"]) expect(await call(client, "write_file", { path: `ci/${name}`, content: "1" })).toMatchObject({ isError: false, data: { confirmed: true } });
    expect(asked).toHaveLength(2);
    // What the guard asks itself is asked all the same, and "always" is no answer to it.
    expect(await call(client, "delete_file", { path: "ci/a" })).toMatchObject({ data: { refusal: "declined" } });
  });
});

const preview = async (count: number) => await call(client, "preview_operations", { operations: Array.from({ length: count }, () => ({ intent: "read", path: `${"x/".repeat(1000)}y` })) });

test("a preview of more text than is looked up at once is refused, and one of fewer operations is not", async () => {
  expect(await preview(66)).toMatchObject({ isError: true, data: { what: "the paths are 132066 characters together" } });
  expect(await preview(65)).toMatchObject({ isError: false, data: { decision: "deny" } });
});

describe("calls without end", () => {
  test("are refused in words from the 65th on, and answered once some are through", async () => {
    const slow = await connect(place, ["--session", "many", "--grant", `${place.folder}:rwd`]);
    const cancel = new AbortController();
    const waiting = Array.from({ length: 64 }, async () => await call(slow, "delete_file", { path: "hello.txt" }, { signal: cancel.signal }).catch(() => undefined));
    await until(async () => (await listWaiting(place)).length === 64);
    expect(await call(slow, "read_file", { path: "hello.txt" })).toMatchObject({ isError: true, data: { what: "64 calls go on already, of all clients together" } });
    cancel.abort();
    await Promise.all(waiting);
    await until(async () => !(await call(slow, "read_file", { path: "hello.txt" })).isError);
    await slow.close();
  });
});

describe("large files", () => {
  test("are read part by part, and never through a character", async () => {
    const whole = "aé€😀".repeat(60_000);
    seed("long.txt", whole);
    let [text, offset] = ["", 0];
    for (let more = true; more; ) {
      const { data } = await call(client, "read_file", { path: "long.txt", offset, length: 100_001 });
      text += String(data["content"]);
      offset += Number(data["length"]);
      more = data["truncated"] === true;
    }
    expect(text === whole).toBe(true);
  });

  test("tell how far they are, with numbers that only grow", async () => {
    seed("big.txt", "x".repeat(3 * 1024 * 1024));
    const heard: number[] = [];
    const { data } = await call(client, "read_file", { path: "big.txt", length: 3 * 1024 * 1024 }, { onprogress: ({ progress }) => heard.push(progress) });
    expect(data).toMatchObject({ size: 3 * 1024 * 1024, truncated: false });
    expect(heard.length).toBeGreaterThan(1);
    expect(heard).toEqual([...new Set(heard)].toSorted((a, b) => a - b));
  });

  test("are asked about, with the size", async () => {
    seed("giant", new Uint8Array(11 * 1024 * 1024));
    asked = [];
    answer = "no";
    expect(await call(client, "read_file", { path: "giant", length: 1 })).toMatchObject({ data: { refusal: "declined", ruleId: "invariant:large" } });
    answer = YES;
    expect(await call(client, "read_file", { path: "giant", offset: 11 * 1024 * 1024 - 2 })).toMatchObject({ isError: false, data: { content: "\0\0", truncated: false } });
    expect(asked).toHaveLength(2);
    expect(asked[0]).toContain("11534336 bytes");
  });
});

describe("resources", () => {
  test("tell the grants and the rules, in words and as data", async () => {
    const { resources } = await client.listResources();
    expect(resources.map(({ uri }) => uri)).toEqual(["agentbox://grants", "agentbox://policy"]);
    const read = async (uri: string): Promise<string[]> => (await client.readResource({ uri })).contents.map((content) => ("text" in content ? content.text : ""));
    const [grants, grantData] = await read("agentbox://grants");
    expect(grants).toContain(`${JSON.stringify(place.folder)}: read, write, create, delete (deleted files can be restored)`);
    expect(JSON.parse(grantData ?? "")).toMatchObject({ session: "tools", grants: [{ root: place.folder, trash: true }, { access: { read: true, write: false } }, { trash: false }] });
    const [policy, policyData] = await read("agentbox://policy");
    expect(policy).toMatch(/- invariant:delete: a human is asked[^]*- no-keys: deny/);
    expect(JSON.parse(policyData ?? "")).toMatchObject({ rules: [{ id: "no-keys" }, { id: "ask-ci" }], large: "10m", timeoutSeconds: 300 });
  });
});
