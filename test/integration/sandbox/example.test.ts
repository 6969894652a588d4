import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const root = resolve(import.meta.dirname, "../../..");

test("the example of docs/sandbox.md runs, and does what the page says", async () => {
  const top = realpathSync(mkdtempSync(join(tmpdir(), "agentbox-example-")));
  try {
    const project = join(top, "project");
    mkdirSync(project);
    const [, example = ""] = /```ts\n([^]*?)```/.exec(readFileSync(join(root, "docs/sandbox.md"), "utf8")) ?? [];
    expect(example).toContain('from "agentbox/sandbox"');
    writeFileSync(join(top, "example.ts"), example.replace("agentbox/sandbox", pathToFileURL(join(root, "sandbox/index.ts")).href));
    const { stdout } = await promisify(execFile)(process.execPath, [join(top, "example.ts")], { cwd: project, env: { ...process.env, HOME: join(top, "home") } });
    expect(stdout).toContain(`asked: delete ${join(project, "notes.txt")}\nrefused: outside-roots by roots\nrefused: rule by no-keys\n`);
    expect(stdout).toMatch(/created: 2,[^]*deleted: 1,[^]*asked: 1,\s+refused: 2,/);
    expect(readFileSync(join(project, "notes.txt"), "utf8")).toBe("one\n");
  } finally {
    rmSync(top, { recursive: true });
  }
});
