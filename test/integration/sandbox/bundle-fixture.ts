import { join, resolve } from "node:path";
import { build } from "esbuild";
import { renderOptions } from "../../../scripts/build.ts";

/** Bundles a program of `test/fixtures/` into a directory: of two hundred starts, stripping types and looking for modules is the larger part. */
export async function bundleFixture(name: string, directory: string): Promise<string> {
  const output = join(resolve(directory), `${name}.mjs`);
  await build(renderOptions({ entry: `test/fixtures/${name}.ts`, output }));
  return output;
}
