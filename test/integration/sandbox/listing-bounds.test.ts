import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Sandbox } from "../../../sandbox/sandbox.ts";
import { everything } from "./guarded-tree.ts";

let top: string;
let root: string;
let sandbox: Sandbox;
beforeEach(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), "agentbox-listing-")));
  root = realpathSync(mkdtempSync(join(top, "root-")));
  sandbox = new Sandbox({ sessionId: "s1", agentboxHome: join(top, "home"), config: { rules: [{ id: "secret", path: "secret/**", action: "deny" }] } });
  sandbox.grant({ root, access: everything });
});
afterEach(async () => {
  await sandbox.close();
  rmSync(top, { recursive: true });
});

const about = { sessionId: "s1", taskId: "t1" };
const list = (path: string, limit = 100_000) => sandbox.files.listFiles({ ...about, path, intent: "list", recursive: true, limit });

describe("a recursive listing", () => {
  test("names directories that a rule denies and shows nothing of them", async () => {
    for (const name of ["open/sub", "secret/sub"]) mkdirSync(join(root, name), { recursive: true });
    for (const name of ["open/sub/key", "secret/sub/key"]) writeFileSync(join(root, name), "k");
    await expect(list(join(root, "secret/sub"))).rejects.toMatchObject({ rule: "secret" });
    const { entries, truncated } = await list(root);
    expect(entries.map(({ path }) => path.slice(root.length + 1)).toSorted()).toEqual(["open", "open/sub", "open/sub/key", "secret"]);
    expect(truncated).toBe(false);
  });

  test("that ends at a depth says that it is not all", async () => {
    mkdirSync(join(root, "d/".repeat(150)), { recursive: true });
    expect(await list(root)).toMatchObject({ truncated: false });
    mkdirSync(join(root, "d/".repeat(230)), { recursive: true });
    const { entries, truncated } = await list(root);
    expect([entries.length, truncated]).toEqual([200, true]);
  });

  test("of long paths is no more than fits one answer, and says so", async () => {
    const deep = join(root, `${"x".repeat(200)}/`.repeat(15));
    mkdirSync(deep, { recursive: true });
    for (let index = 0; index < 1200; index += 1) writeFileSync(join(deep, String(index)), "");
    const { entries, truncated } = await list(root);
    expect(truncated).toBe(true);
    expect(entries.length).toBeGreaterThan(500);
    expect(JSON.stringify(entries).length).toBeLessThan(4 * 1024 * 1024);
  });
});

describe("a path", () => {
  test("that leads through names without end is refused, however it is written", async () => {
    mkdirSync(join(root, "d"));
    writeFileSync(join(root, "a.txt"), "a");
    symlinkSync("d/../".repeat(400), join(root, "L"));
    const read = (path: string) => sandbox.files.readFile({ ...about, path: join(root, "L").replace(/L$/, path), intent: "read" });
    for (const path of [`${"L/".repeat(20)}a.txt`, `${"d/../".repeat(510)}a.txt`]) await expect(read(path)).rejects.toMatchObject({ code: "ENAMETOOLONG" });
    expect(await read("L/a.txt")).toMatchObject({ size: 1 });
  });
});
