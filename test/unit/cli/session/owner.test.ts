import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { describeSelf, isGone, parseOwner, renderOwner } from "../../../../cli/session/owner.ts";

test("a running process is not gone", async () => {
  expect(await isGone(await describeSelf())).toBe(false);
});

test("a process that ended is gone", async () => {
  const child = spawn("true");
  await once(child, "exit");
  expect(await isGone({ ...(await describeSelf()), pid: child.pid ?? 0 })).toBe(true);
});

test("another process with the same id is not the owner", async () => {
  expect(await isGone({ ...(await describeSelf()), start: "1" })).toBe(true);
});

test("a process from before the machine's last start is gone", async () => {
  const self = await describeSelf();
  expect(await isGone({ ...self, machine: `${self.machine.split("/")[0]}/another-boot` })).toBe(true);
});

test("a process of another machine is never taken for gone", async () => {
  expect(await isGone({ pid: 999_999_999, start: "1", machine: "elsewhere/boot" })).toBe(false);
});

test("the label of a container gives its owner back", async () => {
  const self = await describeSelf();
  expect(parseOwner(renderOwner(self))).toEqual(self);
  expect(parseOwner("somebody else's label")).toBeUndefined();
});
