import { lstatSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { checkMounts, parseMountPoints } from "../../../entrypoint/mounts.ts";
import type { MountedPath } from "../../../policy/box-spec.ts";
import { FirewallError } from "../../../policy/errors.ts";

describe("the table of mounts", () => {
  test("is read with its escapes, and without what is no line", () => {
    const text = String.raw`25 1 254:0 / / rw - ext4 /dev/vda rw
26 25 254:0 /p /home/a\040b\134c\011d ro,nosuid master:1 - ext4 /dev/vda rw
`;
    expect([...parseMountPoints(text)]).toEqual(["/", "/home/a b\\c\td"]);
  });

  test("does not take a mount whose directory was removed for one that is in place", () => {
    expect(parseMountPoints(String.raw`27 25 0:5 / /p/x//deleted rw - tmpfs t rw`).has("/p/x")).toBe(false);
  });
});

describe.skipIf(process.platform !== "linux")("a box's mounts", () => {
  const user = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0, home: "/nonexistent" };
  let directory: string;

  beforeEach(() => {
    directory = realpathSync(mkdtempSync(join(tmpdir(), "agentbox-mounts-")));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  test("pass when each is a mount point and the planned file", async () => {
    await expect(checkMounts({ user, mounts: [identify("/proc"), identify("/")] })).resolves.toBeUndefined();
    await expect(checkMounts({ user })).resolves.toBeUndefined();
  });

  test("are refused when one is the right directory, but no mount of its own: the mount lies elsewhere", async () => {
    await expect(checkMounts({ user, mounts: [identify(directory)] })).rejects.toThrow(/was replaced between planning and start: in the box it is not mounted.*start again/);
  });

  test("are refused when another file is mounted, and each one is named", async () => {
    const { device, inode } = identify(directory);
    const wrong = checkMounts({ user, mounts: [{ target: "/proc", device, inode }, { target: "/", device, inode }] });
    await expect(wrong).rejects.toThrow(FirewallError);
    await expect(wrong).rejects.toThrow(/"\/proc" was replaced[^]*"\/" was replaced/);
  });
});

function identify(target: string): MountedPath {
  const { dev, ino } = lstatSync(target, { bigint: true });
  return { target, device: String(dev), inode: String(ino) };
}
