import { join } from "node:path";
import { expect, it } from "vitest";
import { z } from "zod";
import { PROXY_IDS } from "../../../policy/reserved-ids.ts";
import { startNamespaceLab } from "../../lab/namespace.ts";
import { lookUp } from "./box-questions.ts";
import { holdBox } from "./held-box.ts";
import { NAME_WALL, readDecisions } from "./netns-box.ts";

const LOAD = join(import.meta.dirname, "../../fixtures/proxy-load.py");
const OTHER = "93.184.220.34";
const resultSchema = z.object({ outcomes: z.record(z.string(), z.int()) });

it("the box's proxy, killed three times while clients do not stop asking, opens nothing meanwhile and is back each time", async () => {
  await using lab = await startNamespaceLab();
  const run = await holdBox(lab, { allowed: ["github.com"], critical: [], spec: { policy: NAME_WALL } }, async (box) => {
    expect(await lookUp(box, "github.com")).toBe("0");
    const load = box.exec(["/usr/bin/python3", LOAD, "github.com", "example.com", OTHER, "9"]);
    for (let kill = 0; kill < 3; kill += 1) {
      await new Promise((resolve) => setTimeout(resolve, 2000));
      const killed = await box.exec(["sh", "-c", 'pkill -KILL -P "$(pgrep -o -f agentbox-resolver)" && echo killed'], PROXY_IDS);
      expect(killed.stdout).toBe("killed\n");
    }
    const { stdout, stderr } = await load;
    expect(stderr).toBe("");
    const { outcomes } = resultSchema.parse(JSON.parse(stdout));
    const of = (kind: string): string[] => Object.keys(outcomes).filter((outcome) => outcome.startsWith(`${kind}: `)).map((outcome) => outcome.slice(kind.length + 2));
    // What the killed one had taken ends; what comes while nobody takes it waits in the queue of the port that nobody else can have.
    expect(new Set(of("other"))).toEqual(new Set(["HTTP/1.1 403 Forbidden", ...of("other").filter(isEnd)]));
    expect(new Set(of("redirected"))).toEqual(new Set(["HTTP/1.1 403 Forbidden", ...of("redirected").filter(isEnd)]));
    expect(of("allowed").filter((said) => !isEnd(said))).toEqual(["HTTP/1.1 200 Connection Established"]);
    expect(outcomes["allowed: HTTP/1.1 200 Connection Established"]).toBeGreaterThan(100);
    // It is there after the last of three as well.
    await expect.poll(async () => (await box.exec(["/usr/bin/python3", LOAD, "github.com", "example.com", OTHER, "0.2"])).stdout, { timeout: 20_000 }).toContain("allowed: HTTP/1.1 200");
  });
  expect(await lab.control.connections({ address: OTHER })).toEqual([]);
  expect(await lab.control.connections({ port: 443 })).not.toEqual([]);
  expect(readDecisions(run).filter(({ host, action }) => host === "example.com" && action === "deny").map(({ reason }) => reason)).toContain("not_allowed");
});

function isEnd(said: string): boolean {
  return ["ended", "ConnectionResetError", "BrokenPipeError"].includes(said);
}
