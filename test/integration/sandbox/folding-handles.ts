import { readdirSync } from "node:fs";
import { foldName } from "../../../policy/sandbox-name.ts";
import { type Handles, linuxHandles } from "../../../sandbox/held-path.ts";

/**
 * A case-folding file system over one that is not, since the kernels of CI are built without CONFIG_UNICODE: each name of a
 * path is looked up as it is, then folded. Like ext4, it takes the spelling that was asked for as the place of
 * what was opened, so nobody can learn the real name from there.
 */
export function makeFoldingHandles(): Handles {
  /** From a text with real names to what was asked for, and from a handle to the same. */
  const askedByText = new Map<string, string>();
  const askedByFd = new Map<number, string>();
  return {
    ...linuxHandles,
    below(directory, name) {
      const asked = linuxHandles.below(directory, name);
      const real = foldPath(asked);
      askedByText.set(real, restOf(asked));
      return real;
    },
    open(text) {
      const fd = linuxHandles.open(text);
      askedByFd.set(fd, askedByText.get(text) ?? "");
      return fd;
    },
    placeOf(fd, expected) {
      const place = linuxHandles.placeOf(fd, expected);
      const asked = askedByFd.get(fd) ?? "";
      return foldName(place).endsWith(`/${foldName(asked)}`) ? `${place.slice(0, place.length - asked.length)}${asked}` : place;
    },
  };
}

const HELD = /^\/proc\/self\/fd\/\d+/;

function restOf(text: string): string {
  return text.replace(HELD, "").replace(/^\//, "");
}

function foldPath(text: string): string {
  const start = HELD.exec(text)?.[0] ?? "";
  return restOf(text)
    .split("/")
    .reduce((place, name) => `${place}/${findSpelling(place, name)}`, start);
}

function findSpelling(directory: string, name: string): string {
  if (name === "." || name === "..") return name;
  try {
    const names = readdirSync(`${directory}/.`);
    return names.includes(name) ? name : (names.find((other) => foldName(other) === foldName(name)) ?? name);
  } catch {
    return name;
  }
}
