import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { hashContext, readContext, writeContext } from "../../../../cli/image/context.ts";

let root: string;

beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), "agentbox context "));
  put("Dockerfile", "FROM x");
  put("build/entrypoint.mjs", "1");
  put("build/entrypoint-main.mjs", "2");
  for (const program of ["keeper", "keeper-main", "proxy", "authority", "control"]) put(`build/${program}.mjs`, program);
  put("build/install-agents.mjs", "3");
  put("scripts/make-user.sh", "4");
  put("allowlists/services.sh", "5");
  put("allowlists/presets/rust.sh", "6");
  put("secret.env", "never sent");
  put("allowlists/notes.txt", "never sent");
});

afterEach(() => rmSync(root, { recursive: true }));

function put(name: string, content: string): void {
  mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
  writeFileSync(path.join(root, name), content);
}

test("the context holds what the image is made of and nothing else", async () => {
  const files = await readContext(root, ["PEM 1", "PEM 2"]);
  expect(files.map((file) => file.path)).toEqual([
    "Dockerfile",
    "allowlists/presets/rust.sh",
    "allowlists/services.sh",
    "authority.mjs",
    "ca/01.crt",
    "ca/02.crt",
    "control.mjs",
    "entrypoint-main.mjs",
    "entrypoint.mjs",
    "install-agents.mjs",
    "keeper-main.mjs",
    "keeper.mjs",
    "make-user.sh",
    "proxy.mjs",
  ]);
});

test("the directory of certificates is there even when there are none", async () => {
  const target = path.join(root, "out");
  mkdirSync(target);
  await writeContext(target, await readContext(root, []));
  expect(readdirSync(path.join(target, "ca"))).toEqual([]);
  expect(readFileSync(path.join(target, "allowlists/presets/rust.sh"), "utf8")).toBe("6");
  expect(statSync(path.join(target, "Dockerfile")).mode & 0o777).toBe(0o644);
});

test.each([
  { name: "an edited allowlist", change: () => put("allowlists/services.sh", "5 ") },
  { name: "a new preset", change: () => put("allowlists/presets/go.sh", "") },
  { name: "another entrypoint", change: () => put("build/entrypoint-main.mjs", "2b") },
  { name: "another resolver", change: () => put("build/proxy.mjs", "2b") },
  { name: "an executable bit", change: () => chmodSync(path.join(root, "scripts/make-user.sh"), 0o755) },
])("$name makes another image", async ({ change }) => {
  const before = hashContext(await readContext(root, []), { A: "1" });
  change();
  expect(hashContext(await readContext(root, []), { A: "1" })).not.toBe(before);
});

test("other files, and the order of arguments, do not", async () => {
  const before = hashContext(await readContext(root, []), { A: "1", B: "2" });
  put("secret.env", "changed");
  expect(hashContext(await readContext(root, []), { B: "2", A: "1" })).toBe(before);
});

test("other arguments and other certificates make another image", async () => {
  const files = await readContext(root, []);
  const hashes = [hashContext(files, { A: "1" }), hashContext(files, { A: "2" }), hashContext(await readContext(root, ["PEM"]), { A: "1" })];
  expect(new Set(hashes).size).toBe(3);
});

test("an installation without its build says what to do", async () => {
  rmSync(path.join(root, "build"), { recursive: true });
  await expect(readContext(root, [])).rejects.toThrow(/build\/entrypoint\*\.mjs is missing.*npm install/);
});
