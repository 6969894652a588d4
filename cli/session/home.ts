import { mkdir, rename, writeFile } from "node:fs/promises";
import path from "node:path";

/** Returns the directory that holds everything the product keeps on the host. */
export function findAgentboxHome(home: string): string {
  return path.join(home, ".agentbox");
}

/** Makes a directory that only its owner may enter, and those above it that are missing. */
export async function makePrivateDirectory(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
}

/** Writes a file whole or not at all, so that a reader never sees half of it. */
export async function writeWhole(file: string, content: string, mode: number): Promise<void> {
  const draft = `${file}.${process.pid}.new`;
  await writeFile(draft, content, { mode });
  await rename(draft, file);
}
