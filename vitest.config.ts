import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/unit/**/*.test.{ts,tsx}", "test/integration/**/*.test.{ts,tsx}"],
    // Labs, namespaces and boxes take their time on a small machine; a test that hangs still ends.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // The machine for CI has two cores, and most integration tests wait for processes.
    maxWorkers: 3,
  },
});
