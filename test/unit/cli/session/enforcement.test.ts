import { expect, test } from "vitest";
import { withEnforcement } from "../../../../cli/session/enforcement.ts";
import { UsageError } from "../../../../policy/errors.ts";
import { emptyDocument } from "../../../../policy/policy-document.ts";

const NAME = emptyDocument({ name: "shell", hosts: [], critical: null });

test("what was typed wins over what is configured, and silence leaves it", () => {
  expect(withEnforcement(NAME, "address")).toEqual({ ...NAME, enforcement: "address" });
  expect(withEnforcement({ ...NAME, enforcement: "address" }, "name")).toEqual(NAME);
  expect(withEnforcement(NAME, undefined)).toBe(NAME);
});

test("addresses cannot serve a list of what is denied", () => {
  expect(() => withEnforcement({ ...NAME, base: "deny-list" }, "address")).toThrow(UsageError);
  expect(withEnforcement({ ...NAME, base: "deny-list" }, "name")).toMatchObject({ base: "deny-list" });
});
