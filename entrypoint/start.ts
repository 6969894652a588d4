import { enableCompileCache, flushCompileCache } from "node:module";

// Node makes its standard streams when they are first looked at, and sets their descriptors non-blocking
// then, which the agent would inherit over the exec. Pipes between other streams look at them as well, so
// they must not be there at all; this program writes to its descriptors itself.
for (const stream of ["stdin", "stdout", "stderr"]) Object.defineProperty(process, stream, { value: undefined });

// Lies on the read-only root file system: an agent that could write it would choose what root runs next time.
enableCompileCache(`${import.meta.dirname}/cache`);
const { main, warmProgramCaches } = await import("./main.ts");

// The image build compiles everything once; a box only reads.
if (process.argv[2] === "--warm-cache") {
  flushCompileCache();
  warmProgramCaches();
} else {
  await main();
}
