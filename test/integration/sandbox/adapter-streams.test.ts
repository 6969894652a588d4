import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { SandboxAdapter } from "../../../sandbox/sandbox-adapter.ts";
import { outcomeOf } from "./guarded-tree.ts";
import { about, OpenSandbox, SECRET } from "./open-sandbox.ts";

const large = "piece of it ".repeat(60_000);
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

let guard: OpenSandbox;
let files: SandboxAdapter;

beforeEach(() => {
  guard = new OpenSandbox();
  files = guard.sandbox.files;
  writeFileSync(guard.at("large"), large);
});
afterEach(async () => await guard.end());

async function openStream() {
  const { content } = await files.readFile({ ...about, path: guard.at("large"), intent: "read" });
  if (content === undefined || content instanceof Uint8Array) throw new Error("not a stream");
  return content;
}

test("a large file is in the log when it was read to its end", async () => {
  const hash = createHash("sha256");
  const content = await openStream();
  expect(guard.story()).toEqual(["request read allow default"]);
  for await (const piece of content) hash.update(piece);
  expect(hash.digest("hex")).toBe(sha256(large));
  expect(guard.entries().at(-1)).toMatchObject({ outcome: "done", size: large.length, digest: sha256(large) });
});

test("a reader that stops has read what it got, and a second one nothing", async () => {
  const content = await openStream();
  const first = content[Symbol.asyncIterator]();
  await first.next();
  await expect(content[Symbol.asyncIterator]().next()).rejects.toThrow("read once");
  expect(guard.story()).toHaveLength(1);
  await first.return?.();
  expect(guard.entries().at(-1)).toMatchObject({ outcome: "done", size: large.length });
  expect(guard.entries().at(-1)?.digest).toBeUndefined();
});

test("a stream that is larger than announced leaves the old file, and one as large is written", async () => {
  const write = (sizeHint: number) => files.writeFile({ ...about, path: guard.at("file.txt"), intent: "write", sizeHint, content: pieces("four", "five") });
  expect(await outcomeOf(() => write(7))).toBe("rule");
  expect(readFileSync(guard.at("file.txt"), "utf8")).toBe(SECRET);
  expect(guard.story().at(-1)).toBe("outcome refused rule");
  await write(8);
  expect(readFileSync(guard.at("file.txt"), "utf8")).toBe("fourfive");
});

test("a stream that nobody announced is asked about, since it may be any size", async () => {
  guard.answer = "deny";
  expect(await outcomeOf(() => files.writeFile({ ...about, path: guard.at("new"), intent: "create", content: pieces("x") }))).toBe("declined");
  expect(guard.asked[0]?.verdict.ruleId).toBe("invariant:large");
  await files.writeFile({ ...about, path: guard.at("new"), intent: "create", content: pieces("x"), sizeHint: 1 });
});

test("a stream that breaks leaves the old file, and nobody knows how far it came", async () => {
  const content = (async function* () {
    yield Buffer.from("half");
    throw new Error("the caller's own");
  })();
  await expect(files.writeFile({ ...about, path: guard.at("file.txt"), intent: "write", content })).rejects.toThrow("the caller's own");
  expect(readFileSync(guard.at("file.txt"), "utf8")).toBe(SECRET);
  expect(guard.story().at(-1)).toBe("outcome unknown");
});

async function* pieces(...texts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}
