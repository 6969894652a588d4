import path from "node:path";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    // Labs and their servers are many short Node processes, which need not compile the same sources each time.
    env: { NODE_COMPILE_CACHE: path.join(import.meta.dirname, "build/cache/tests"), AGENTBOX_TEST_LAB: path.join(import.meta.dirname, "build/tests/lab.mjs") },
    globalSetup: "test/build-first.ts",
    include: ["test/unit/**/*.test.{ts,tsx}", "test/integration/**/*.test.{ts,tsx}"],
    // Labs, namespaces and boxes take their time on a small machine; a test that hangs still ends.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // The machine for CI has two cores, but integration tests mostly wait for processes.
    maxWorkers: 6,
    // A process for each of 250 files is half of all work; who changes what a process has puts it back.
    isolate: false,
  },
});
