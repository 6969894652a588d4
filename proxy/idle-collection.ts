import { performance } from "node:perf_hooks";
import { getHeapStatistics } from "node:v8";

const LOOK_MS = 1000;
/** Share of the last second in which the process did something; 5,000 answers a second take more. */
const IDLE_BELOW = 0.03;
/** Growth of the heap in bytes that is worth a collection, which takes 0.1 s: some thousand names. */
const WORTH_BYTES = 6 * 1024 * 1024;

/**
 * Gives memory back after a burst of questions, once nobody waits for an answer: left alone, V8 keeps what a
 * burst left behind until the next one. `collect` has to compact the heap.
 */
export function collectWhenIdle(collect: () => void): void {
  let last = performance.eventLoopUtilization();
  let settled = getHeapStatistics().total_heap_size;
  setInterval(() => {
    const { utilization } = performance.eventLoopUtilization(last);
    last = performance.eventLoopUtilization();
    if (utilization > IDLE_BELOW || getHeapStatistics().total_heap_size - settled < WORTH_BYTES) return;
    collect();
    settled = getHeapStatistics().total_heap_size;
  }, LOOK_MS).unref();
}
