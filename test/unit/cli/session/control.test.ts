import { expect, test } from "vitest";
import { sendControl } from "../../../../cli/session/control.ts";
import type { EngineResult } from "../../../../cli/engine/client.ts";
import type { Engine } from "../../../../cli/engine/engine.ts";
import { EngineError } from "../../../../policy/errors.ts";

type Call = { argv: readonly string[]; input: string | undefined };

function refuse(): never {
  throw new Error("only `call` is used");
}

/** An engine whose client answers one thing and keeps what it was asked. */
function makeEngine(result: EngineResult): { engine: Engine; calls: Call[] } {
  const calls: Call[] = [];
  const client: Engine["client"] = {
    program: "docker",
    call: async (argv, options = {}) => {
      calls.push({ argv, input: options.input });
      return result;
    },
    inherit: refuse,
    pipe: refuse,
  };
  return { calls, engine: { kind: "docker", client, version: "1", rootless: false, sameKernel: true, selinux: false, hostOptions: [], defaultNetwork: "bridge" } };
}

const status = { version: 1, since: 1, degraded: [], learned: { names: 0, addresses: 0 }, proxyRestarts: 0 };

test("asks under the keeper's own ids, in an empty environment, and by stdin only", async () => {
  const reply = { ok: true, status, added: [], removed: [] };
  const { engine, calls } = makeEngine({ exitCode: 0, stdout: JSON.stringify(reply), stderr: "" });
  expect(await sendControl(engine, { container: "agentbox-1-net" }, { op: "status" })).toEqual(reply);
  const [call] = calls;
  expect(call?.argv.join(" ")).toMatch(/^exec --interactive --user 64991:64990 agentbox-1-net \/usr\/bin\/env --ignore-environment \/usr\/local\/bin\/node /);
  expect(call?.argv.join(" ")).not.toContain("status");
  expect(JSON.parse(call?.input ?? "")).toEqual({ op: "status" });
});

test("a refused request is an answer", async () => {
  const reply = { ok: false, complaints: [{ what: "no" }], status: null };
  const { engine } = makeEngine({ exitCode: 78, stdout: JSON.stringify(reply), stderr: "" });
  expect(await sendControl(engine, { container: "c" }, { op: "status" })).toEqual(reply);
});

test.each([
  { name: "a box that has ended", result: { exitCode: 1, stdout: "", stderr: "Error: No such container: c" }, said: /No such container/ },
  { name: "a program that says nothing", result: { exitCode: 69, stdout: "", stderr: "" }, said: /exit code 69/ },
  { name: "an answer of another form", result: { exitCode: 0, stdout: '{"ok":true}', stderr: "" }, said: /did not answer: \{"ok":true\}/ },
])("$name is an EngineError that says what came instead", async ({ result, said }) => {
  const failure: unknown = await sendControl(makeEngine(result).engine, { container: "c" }, { op: "status" }).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(EngineError);
  expect(String(failure)).toMatch(said);
});
