import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { checkAllowlists, readBoxPolicy } from "../../../../cli/session/allowlist.ts";
import { loadPolicy } from "../../../../entrypoint/load-policy.ts";
import { emptyDocument } from "../../../../policy/policy-document.ts";
import { ConfigError } from "../../../../policy/errors.ts";

const repository = path.join(import.meta.dirname, "../../../..");
const document = emptyDocument({ name: "shell", hosts: [], critical: null });
let root: string;

beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), "agentbox lists "));
  cpSync(path.join(repository, "allowlists"), path.join(root, "allowlists"), { recursive: true });
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

const readers = [
  { reader: "a start", files: ["services.sh", "github.sh"], read: () => readBoxPolicy(root, document) },
  { reader: "a rebuild", files: ["services.sh", "github.sh", "presets/rust.sh"], read: () => checkAllowlists(root) },
  { reader: "the box", files: ["services.sh", "github.sh"], read: () => loadPolicy({ policy: document }, path.join(root, "allowlists")) },
];

const mistakes = [
  { mistake: "is a directory", make: (file: string) => { rmSync(file); mkdirSync(file); }, said: /cannot be read \(EISDIR\).*fix: restore/ },
  { mistake: "is malformed", make: (file: string) => writeFileSync(file, "echo hello\n"), said: /:1/ },
];

describe.each(readers)("$reader", ({ files, read }) => {
  test("takes the lists as they are shipped", async () => {
    await expect(read()).resolves.not.toThrow();
  });

  test.each(files.flatMap((name) => mistakes.map((row) => ({ name, ...row }))))("refuses when $name $mistake", async ({ name, make, said }) => {
    make(path.join(root, "allowlists", name));
    const failure: unknown = await read().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ConfigError);
    expect(String(failure)).toContain(`allowlists/${name}`);
    expect(String(failure)).toMatch(said);
  });

  test.each(files.filter((name) => !name.startsWith("presets/")))("refuses when %s is missing", async (name) => {
    rmSync(path.join(root, "allowlists", name));
    await expect(read()).rejects.toThrow(`allowlists/${name}: the file is missing; expected a readable file`);
  });
});

test("a start and a rebuild name the mistakes of all files at once", async () => {
  for (const name of ["services.sh", "github.sh"]) rmSync(path.join(root, "allowlists", name));
  await expect(readBoxPolicy(root, document)).rejects.toThrow(/services\.sh[^]*github\.sh/);
  await expect(checkAllowlists(root)).rejects.toThrow(/services\.sh[^]*github\.sh/);
});
