import { createHash } from "node:crypto";
import { chmod, glob, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { ConfigError, EngineError } from "../../policy/errors.ts";

/** Files of the product by pattern, and the directory of the context they go to; undefined keeps their path. */
type ContextSource = { pattern: string; into?: string };

/** Everything of the product that the image is made of; nothing else of the checkout reaches the builder. */
const contextSources: readonly ContextSource[] = [
  { pattern: "Dockerfile" },
  { pattern: "build/entrypoint*.mjs", into: "" },
  { pattern: "build/keeper*.mjs", into: "" },
  { pattern: "build/proxy.mjs", into: "" },
  { pattern: "build/authority.mjs", into: "" },
  { pattern: "build/control.mjs", into: "" },
  { pattern: "build/install-agents.mjs", into: "" },
  { pattern: "scripts/make-user.sh", into: "" },
  { pattern: "allowlists/**/*.sh" },
];

/** Directory of the context with the site's certificates; it is there even when there are none. */
const caDirectory = "ca";

export type ContextFile = { path: string; content: Buffer; executable: boolean };

/** Reads the files that the image is made of, and adds the certificates (PEM) as `ca/NN.crt`. */
export async function readContext(root: string, certificates: readonly string[]): Promise<ContextFile[]> {
  const lists = await Promise.all(contextSources.map((source) => readSource(root, source)));
  const authorities = certificates.map((pem, index) => ({
    path: `${caDirectory}/${String(index + 1).padStart(2, "0")}.crt`,
    content: Buffer.from(pem),
    executable: false,
  }));
  return [...lists.flat(), ...authorities].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

async function readSource(root: string, { pattern, into }: ContextSource): Promise<ContextFile[]> {
  const paths: string[] = [];
  for await (const found of glob(pattern, { cwd: root })) paths.push(found);
  if (paths.length === 0) {
    throw new EngineError({ what: `${pattern} is missing below ${root}`, expected: "a complete installation", fix: `run \`npm install\` in ${root}` });
  }
  return await Promise.all(
    paths.map(async (found) => {
      const file = path.join(root, found);
      const [content, { mode }] = await Promise.all([readFile(file), stat(file)]).catch((error: NodeJS.ErrnoException) => {
        throw new ConfigError({ what: `cannot be read (${error.code ?? error.message})`, expected: "a readable file", fix: `restore it (git restore ${found})`, place: { file } }, { cause: error });
      });
      const name = into === undefined ? found.split(path.sep).join("/") : path.posix.join(into, path.basename(found));
      return { path: name, content, executable: (mode & 0o100) !== 0 };
    }),
  );
}

/** Hashes a context and the build's arguments: two starts with one hash use one image. */
export function hashContext(files: readonly ContextFile[], args: Readonly<Record<string, string>>): string {
  const hash = createHash("sha256");
  for (const { path: name, content, executable } of files) {
    hash.update(JSON.stringify([name, content.length, executable]));
    hash.update(content);
  }
  hash.update(JSON.stringify(Object.entries(args).toSorted(([a], [b]) => (a < b ? -1 : 1))));
  return hash.digest("hex");
}

/** Writes a context into an empty directory. Modes do not depend on the umask, since builders compare them. */
export async function writeContext(directory: string, files: readonly ContextFile[]): Promise<void> {
  await makeDirectory(path.join(directory, caDirectory));
  for (const { path: name, content, executable } of files) {
    const file = path.join(directory, name);
    await makeDirectory(path.dirname(file));
    await writeFile(file, content);
    await chmod(file, executable ? 0o755 : 0o644);
  }
}

async function makeDirectory(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  await chmod(directory, 0o755);
}
