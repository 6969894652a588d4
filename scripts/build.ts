import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import path from "node:path";
import { build, type BuildOptions, type Plugin } from "esbuild";

/**
 * Bundles the programs into `build/`: few files make a fast start, in the box as on the host, and Node cannot
 * run `.tsx` itself. Runs after `npm install` and by `npm run build`.
 */

const root = path.join(import.meta.dirname, "..");

/** One bundle. `apart` names imports that stay files of their own, loaded only when they are needed. */
export type Bundle = { entry: string; output: string; apart?: Readonly<Record<string, string>> };

const bundles: readonly Bundle[] = [
  // The first only turns the compile cache on, which must happen before the second is loaded; so do two more below.
  { entry: "cli/start.ts", output: "cli.mjs", apart: { "main.ts": "./cli-main.mjs" } },
  { entry: "cli/main.ts", output: "cli-main.mjs", apart: { "launch-screen.tsx": "./launch-screen.mjs", "setup-screen.tsx": "./setup-screen.mjs", "confirm-screen.tsx": "./confirm-screen.mjs", "authority.ts": "./authority.mjs", "mcp.ts": "./mcp.mjs" } },
  { entry: "cli/commands/mcp.ts", output: "mcp.mjs" },
  { entry: "cli/ui/launch-screen.tsx", output: "launch-screen.mjs" },
  { entry: "cli/ui/setup-screen.tsx", output: "setup-screen.mjs" },
  { entry: "cli/ui/confirm-screen.tsx", output: "confirm-screen.mjs" },
  { entry: "proxy/interception/authority.ts", output: "authority.mjs" },
  { entry: "entrypoint/start.ts", output: "entrypoint.mjs", apart: { "main.ts": "./entrypoint-main.mjs" } },
  { entry: "entrypoint/main.ts", output: "entrypoint-main.mjs" },
  { entry: "entrypoint/keeper-start.ts", output: "keeper.mjs", apart: { "main.ts": "./keeper-main.mjs" } },
  { entry: "entrypoint/keeper/main.ts", output: "keeper-main.mjs" },
  { entry: "entrypoint/control-main.ts", output: "control.mjs" },
  { entry: "proxy/main.ts", output: "proxy.mjs", apart: { "authority.ts": "./authority.mjs" } },
  { entry: "sandbox/index.ts", output: "sandbox.mjs" },
  { entry: "scripts/install-agents.ts", output: "install-agents.mjs" },
];

async function main(): Promise<void> {
  const major = Number.parseInt(process.versions.node, 10);
  if (major < 24) throw new Error(`scripts/build.ts needs Node 24 or later, this is ${process.versions.node}; run it as \`npm run build\``);
  mkdirSync(path.join(root, "build"), { recursive: true });
  const present = bundles.filter(({ entry }) => existsSync(path.join(root, entry)));
  await Promise.all(present.map(writeBundle));
}

/** Leaves a program that stays the same alone and exchanges another whole: somebody may be running it, or copying it into an image. */
async function writeBundle(bundle: Bundle): Promise<void> {
  const { outputFiles } = await build({ ...renderOptions(bundle), write: false });
  for (const { path: file, contents } of outputFiles) {
    if (existsSync(file) && readFileSync(file).equals(contents)) continue;
    const draft = `${file}.${process.pid}`;
    writeFileSync(draft, contents);
    renameSync(draft, file);
  }
}

/** Options of one bundle; the entry is relative to the project, the output to `build/` unless it is absolute. */
export function renderOptions({ entry, output, apart = {} }: Bundle): BuildOptions {
  return {
    entryPoints: [path.join(root, entry)],
    outfile: path.resolve(root, "build", output),
    bundle: true,
    platform: "node",
    target: "node24",
    format: "esm",
    jsx: "automatic",
    minifySyntax: true,
    minifyWhitespace: true,
    // React's development build is three times as large and asks for the devtools.
    define: { "process.env.NODE_ENV": '"production"' },
    // Packages in the older module form call `require`, which a module does not have.
    banner: { js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);' },
    logLevel: "warning",
    plugins: [keepApart(entry, apart), leaveOutDevtools, leaveOutLocales, plainBuiltins],
  };
}

/** Ink loads React's devtools when DEV is set; they are no dependency, and in one bundle they would be imported at once. */
const leaveOutDevtools: Plugin = {
  name: "leave-out-devtools",
  setup(setup) {
    setup.onResolve({ filter: /^react-devtools-core$/ }, ({ path: imported }) => ({ path: imported, namespace: "left-out" }));
    setup.onLoad({ filter: /.*/, namespace: "left-out" }, () => ({ contents: "export default {};" }));
  },
};

/** Zod's messages in fifty languages are a third of each bundle that checks anything; English is imported on its own. */
const leaveOutLocales: Plugin = {
  name: "leave-out-locales",
  setup(setup) {
    setup.onLoad({ filter: /zod\/v4\/locales\/index\.js$/ }, () => ({ contents: "export {};" }));
  },
};

/**
 * Takes Node's own modules as objects. Importing one as a module reads every export at once, and in `node:http`
 * one of them loads all of undici: a third of the time in which a program starts.
 */
const plainBuiltins: Plugin = {
  name: "plain-builtins",
  setup(setup) {
    setup.onResolve({ filter: /^[a-z]/ }, ({ path: imported }) => (isBuiltin(imported) ? { path: imported, namespace: "builtin" } : undefined));
    setup.onLoad({ filter: /.*/, namespace: "builtin" }, ({ path: name }) => ({ contents: `module.exports = process.getBuiltinModule(${JSON.stringify(name)});` }));
  },
};

/** Leaves the imports named out of the bundle of `entry` and points them to the bundles of their own. */
function keepApart(entry: string, apart: Readonly<Record<string, string>>): Plugin {
  return {
    name: "keep-apart",
    setup(setup) {
      setup.onResolve({ filter: /\.tsx?$/ }, ({ path: imported, kind }) => {
        const output = kind === "dynamic-import" ? apart[path.basename(imported)] : undefined;
        return output === undefined || imported === entry ? undefined : { path: output, external: true };
      });
    },
  };
}

if (import.meta.main) await main();
