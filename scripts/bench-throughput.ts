import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { z } from "zod";
import { runBox } from "../test/integration/entrypoint/netns-box.ts";
import { type LabBox, startNamespaceLab } from "../test/lab/namespace.ts";
import { measureInterleaved, renderTable, summarize } from "./measure.ts";

/**
 * Measures what the rules cost traffic that is allowed: bulk download, requests on one connection and new connections from a namespace
 * with the firewall and from its sibling without, in turns. Needs root and `npm run build`.
 */
const ADDRESS = "93.184.216.8";
const NAME = "http://chain.lab-names.example";
const BYTES = 256 * 1024 * 1024;
const COUNT = 500;
const CLIENT = join(import.meta.dirname, "../test/fixtures/throughput.mjs");

const sampleSchema = z.object({ megabytesPerSecond: z.number(), requestMs: z.number(), connectMs: z.number() });
type Sample = z.infer<typeof sampleSchema>;
type Side = "off" | "on";

/** `better`: whether more or less of it is good; the ratio is above 1 where the firewall's side is better. */
const MEASURES: readonly { key: keyof Sample; title: string; better: "more" | "less"; digits: number }[] = [
  { key: "megabytesPerSecond", title: "bulk MB/s", better: "more", digits: 0 },
  { key: "requestMs", title: "request on one connection, ms", better: "less", digits: 3 },
  { key: "connectMs", title: "new connection, ms", better: "less", digits: 3 },
];

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "15" },
    json: { type: "string", default: join(import.meta.dirname, "../build/bench-throughput.json") },
  },
});

await using lab = await startNamespaceLab();
const sibling = await lab.addBox();
const start = await runBox(lab, { allowed: [NAME] });
if (start.code !== 0) throw new Error(start.stderr);

const samples: Record<Side, Sample[]> = { off: [], on: [] };
await measureInterleaved(
  [
    { name: "off", run: () => measure(sibling, "off") },
    { name: "on", run: () => measure(lab, "on") },
  ],
  Number(values.rounds),
);

const results = MEASURES.map(({ key, title, better, digits }) => {
  // The first round warms up, here as in measureInterleaved.
  const summary = (side: Side): ReturnType<typeof summarize> => summarize(samples[side].slice(1).map((sample) => sample[key]));
  const [off, on] = [summary("off"), summary("on")];
  return { title, digits, off, on, ratio: better === "more" ? on.median / off.median : off.median / on.median };
});
const rows = results.map(({ title, digits, off, on, ratio }) => [title, ...[off, on].flatMap(({ median, q1, q3 }) => [median, q1, q3].map((value) => value.toFixed(digits))), ratio.toFixed(2)]);
process.stdout.write(`${renderTable([["measure", "off", "q1", "q3", "on", "q1", "q3", "ratio"], ...rows])}\n`);
mkdirSync(dirname(values.json), { recursive: true });
const document = { benchmark: "throughput", node: process.version, cpu: cpus()[0]?.model ?? "unknown", rounds: Number(values.rounds), results };
writeFileSync(values.json, `${JSON.stringify(document, undefined, 2)}\n`);

async function measure(box: LabBox, side: Side): Promise<number> {
  const { stdout, stderr } = await box.exec([process.execPath, CLIENT, ADDRESS, String(BYTES), String(COUNT)], { timeoutMs: 60_000 });
  if (stdout === "") throw new Error(stderr);
  const sample = sampleSchema.parse(JSON.parse(stdout));
  samples[side].push(sample);
  return sample.megabytesPerSecond;
}
