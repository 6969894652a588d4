import { expect, test } from "vitest";
import { chooseTopology, chooseUser, requireUsualIds, type TopologyInput } from "../../../../cli/session/box-user.ts";

const user = { uid: 1000, gid: 1000 };
const root = { uid: 0, gid: 0 };
const input: TopologyInput = { network: { firewall: true }, boxUser: user, admin: false, typed: undefined, configured: undefined };

test.each([
  { name: "an ordinary user has one container", change: {}, expected: "container" },
  { name: "the configuration asks for a sidecar", change: { configured: "sidecar" }, expected: "sidecar" },
  { name: "an option beats the configuration", change: { configured: "sidecar", typed: "container" }, expected: "container" },
  { name: "root has the sidecar", change: { boxUser: root }, expected: "sidecar" },
  { name: "root has the sidecar whatever the configuration says", change: { boxUser: root, configured: "container" }, expected: "sidecar" },
  { name: "an administrator has the sidecar", change: { boxUser: root, admin: true }, expected: "sidecar" },
  { name: "without a firewall there is nothing to keep apart", change: { network: { firewall: false }, boxUser: root, typed: "sidecar" }, expected: "container" },
] as const)("$name", ({ change, expected }) => {
  expect(chooseTopology({ ...input, ...change })).toBe(expected);
});

test.each([
  { name: "root", admin: false, said: /you are root in the box.*--topology sidecar/ },
  { name: "an administrator", admin: true, said: /shell --admin is root/ },
])("$name is refused one container with the keeper", ({ admin, said }) => {
  expect(chooseTopology({ ...input, typed: "container" })).toBe("container");
  expect(() => chooseTopology({ ...input, boxUser: root, admin, typed: "container" })).toThrow(said);
});

test("with a rootless Docker the user is the box's root, and gets the sidecar", () => {
  const boxUser = chooseUser({ user }, { kind: "docker", rootless: true });
  expect(chooseTopology({ ...input, boxUser })).toBe("sidecar");
});

test.each([{ uid: 64_990, gid: 1000 }, { uid: 64_991, gid: 1000 }, { uid: 1000, gid: 64_990 }])("refuses %j, which would be the box's own program or enter its directory", (ids) => {
  expect(() => requireUsualIds(ids)).toThrow(/those of the box's own programs/);
});

test("takes the ids beside the reserved ones", () => {
  expect(() => requireUsualIds({ uid: 64_992, gid: 64_991 })).not.toThrow();
});
