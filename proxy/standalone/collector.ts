import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { collectWhenIdle } from "../idle-collection.ts";

const STARTED_MS = 2000;

/** Gives back the memory that the start took, and later that of bursts. Node has the means, and hands them out to new contexts only. */
export function keepSmall(): void {
  setFlagsFromString("--expose-gc");
  const collector: unknown = runInNewContext("gc");
  if (typeof collector !== "function") return;
  const collect = (): void => void Reflect.apply(collector, undefined, [{ type: "major", execution: "sync", flavor: "last-resort" }]);
  setTimeout(collect, STARTED_MS).unref();
  collectWhenIdle(collect);
}
