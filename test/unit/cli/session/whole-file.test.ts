import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { writeWhole } from "../../../../cli/session/whole-file.ts";

let directory: string;
let file: string;
let victim: string;

beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), "agentbox whole "));
  file = path.join(directory, "kept.json");
  victim = path.join(directory, "victim");
  writeFileSync(victim, "the user's own");
});

afterEach(() => rmSync(directory, { recursive: true, force: true }));

test("a file is written, and replaced whole", async () => {
  await writeWhole(file, "one", 0o600);
  await writeWhole(file, "two", 0o600);
  expect(readFileSync(file, "utf8")).toBe("two");
  expect(readdirSync(directory).toSorted()).toEqual(["kept.json", "victim"]);
});

test.each([
  { name: "of the file", link: () => file },
  { name: "of a draft, under a name that can be guessed", link: () => `${file}.${process.pid}.new` },
  { name: "of a draft without a number", link: () => `${file}.new` },
])("nothing is written through a link in the place $name", async ({ link }) => {
  symlinkSync(victim, link());
  await writeWhole(file, "ours", 0o600);
  expect(readFileSync(victim, "utf8")).toBe("the user's own");
  expect(readFileSync(file, "utf8")).toBe("ours");
  expect(lstatSync(file).isFile()).toBe(true);
});

test("a link that has the very name of the draft stops the writing", async () => {
  // What a draft is called when its name is known beforehand after all.
  vi.resetModules();
  vi.doMock("node:crypto", async (importOriginal) => ({ ...(await importOriginal<typeof import("node:crypto")>()), randomBytes: () => Buffer.from("known") }));
  try {
    const known = await import("../../../../cli/session/whole-file.ts");
    symlinkSync(victim, `${file}.${Buffer.from("known").toString("hex")}.new`);
    await expect(known.writeWhole(file, "ours", 0o600)).rejects.toMatchObject({ code: "EEXIST" });
  } finally {
    vi.doUnmock("node:crypto");
    vi.resetModules();
  }
  expect(readFileSync(victim, "utf8")).toBe("the user's own");
});

test("a draft whose file cannot be replaced is removed", async () => {
  mkdirSync(path.join(file, "full"), { recursive: true });
  await expect(writeWhole(file, "ours", 0o600)).rejects.toMatchObject({ code: expect.stringMatching(/EISDIR|ENOTEMPTY/) });
  expect(readdirSync(directory).toSorted()).toEqual(["kept.json", "victim"]);
});

test("no umask takes rights from a file that others have to read", async () => {
  const before = process.umask(0o077);
  try {
    await writeWhole(file, "ours", { exact: 0o644 });
    await writeWhole(victim, "ours", 0o644);
  } finally {
    process.umask(before);
  }
  expect([file, victim].map((one) => statSync(one).mode & 0o777)).toEqual([0o644, 0o600]);
});
