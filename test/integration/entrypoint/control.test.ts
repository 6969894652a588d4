import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { controlReplySchema } from "../../../policy/keeper-message.ts";
import { KEEPER_IDS } from "../../../policy/reserved-ids.ts";
import type { CommandResult } from "../../lab/command.ts";
import { startNamespaceLab, type NamespaceLab } from "../../lab/namespace.ts";
import { type HeldBox, holdBox } from "./held-box.ts";

// The way into a running box as the engine's exec takes it: what comes in on standard input, what is said of it.

const CONTROL = join(import.meta.dirname, "../../../build/control.mjs");
const [REFUSED, UNAVAILABLE] = [78, 69] as const;

let lab: NamespaceLab;
beforeAll(async () => {
  lab = await startNamespaceLab();
});
afterAll(() => lab.stop());

function ask(box: HeldBox, input: string): Promise<CommandResult> {
  return box.exec([process.execPath, CONTROL], KEEPER_IDS, input);
}

it("answers a request however it is laid out, and refuses whatever is none in the keeper's words", async () => {
  await holdBox(lab, { allowed: ["github.com"], critical: ["github.com"] }, async (box) => {
    for (const input of ['{"op":"status"}', '{\n  "op": "status"\r\n}\n']) {
      const { exitCode, stdout } = await ask(box, input);
      expect(exitCode).toBe(0);
      expect(controlReplySchema.parse(JSON.parse(stdout))).toMatchObject({ ok: true, status: { version: 1 } });
    }
    for (const input of ["", "no JSON", '{"op":"status"', '{"op":"open everything"}', '{"op":"status"} {"op":"status"}', '{"op":"replace","document":{"version":2}}']) {
      const { exitCode, stdout } = await ask(box, input);
      expect(exitCode).toBe(REFUSED);
      expect(controlReplySchema.parse(JSON.parse(stdout))).toMatchObject({ ok: false, complaints: expect.arrayContaining([expect.objectContaining({ expected: "a request that this box's keeper knows" })]), status: { version: 1 } });
    }
    // The agent's own uid does not get there.
    const alone = await box.exec([process.execPath, CONTROL], { uid: 1000, gid: 1000 }, '{"op":"status"}');
    expect(alone).toMatchObject({ exitCode: UNAVAILABLE, stdout: "" });
    expect(alone.stderr).toContain("agentbox: the keeper cannot be reached");
  });
});
