import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { watchConfig } from "../../../../cli/session/session-config-watch.ts";
import { ConfigError } from "../../../../policy/errors.ts";

let directory: string;
let stop: (() => Promise<void>) | undefined;
const file = (name: string): string => join(directory, name);
const write = (name: string, text: string): void => writeFileSync(file(name), text);

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "agentbox-watch-"));
  write("config.toml", "one");
});
afterEach(async () => {
  await stop?.();
  rmSync(directory, { recursive: true, force: true });
});

test("what changes during a reload leads to another one", async () => {
  const told: string[][] = [];
  let trusted = false;
  stop = watchConfig({
    list: () => [file("config.toml"), file("trust.json")],
    reload: async () => {
      if (trusted) return;
      // The owner agrees just after the file was judged.
      trusted = true;
      write("trust.json", "{}");
      throw new ConfigError({ what: "you did not agree to this file yet" });
    },
    tell: async (troubles) => void told.push([...troubles]),
  });
  write("config.toml", "two, longer");
  await vi.waitFor(() => expect(told).toHaveLength(2), 5000);
  expect(told).toEqual([[expect.stringContaining("did not agree")], []]);
});

test("a file that is named only now and changes while it is read is read again", async () => {
  let named = false;
  const read: string[] = [];
  stop = watchConfig({
    list: () => [file("config.toml"), ...(named ? [file("hosts.txt")] : [])],
    reload: async () => {
      read.push("once");
      if (!named) write("hosts.txt", "changed since");
      named = true;
    },
    tell: async () => {},
  });
  write("config.toml", "two, longer");
  await vi.waitFor(() => expect(read).toHaveLength(2), 5000);
});
