import { expect, it } from "vitest";
import { repositoryName } from "../../lab/git-repositories.ts";

it.each([
  ["a path with the suffix", "/owner/repo.git", "owner/repo.git"],
  ["the same path without it", "owner/repo", "owner/repo.git"],
  ["a group below a group", "/group/below/repo", "group/below/repo.git"],
  ["no way up", "/owner/../../etc", undefined],
  ["no hidden folder", "/.ssh/keys", undefined],
  ["no option", "-o/repo", undefined],
  ["no empty name", "/", undefined],
  ["no other characters", "/owner/re po", undefined],
])("takes %s", (_, path, name) => {
  expect(repositoryName(path)).toBe(name);
});
