import { enableCompileCache, flushCompileCache } from "node:module";

// Lies on the read-only root file system: an agent that could write it would choose what root runs next time.
enableCompileCache(`${import.meta.dirname}/cache`);
const { main } = await import("./main.ts");

// The image build compiles everything once; a box only reads.
if (process.argv[2] === "--warm-cache") flushCompileCache();
else await main();
