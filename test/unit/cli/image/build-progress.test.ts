import { expect, test } from "vitest";
import { renderBuildArgv } from "../../../../cli/engine/build.ts";
import { parseBuildLine } from "../../../../cli/image/build-progress.ts";

test.each([
  { name: "the classic builder", line: "Step 7/20 : RUN apt-get update", step: { number: 7, total: 20, text: "RUN apt-get update" } },
  { name: "Podman", line: "STEP 2/9: COPY ca/ /ca/", step: { number: 2, total: 9, text: "COPY ca/ /ca/" } },
  { name: "BuildKit", line: "#7 [3/9] RUN true", step: { number: 3, total: 9, text: "RUN true" } },
  { name: "BuildKit with a stage", line: "#12 [base  3/12] RUN true", step: { number: 3, total: 12, text: "RUN true" } },
  { name: "a step's own output", line: "#7 0.512 Get:1 stable", step: undefined },
  { name: "an internal step", line: "#1 [internal] load build definition", step: undefined },
])("reads a line of $name", ({ line, step }) => {
  expect(parseBuildLine(line)).toEqual(step);
});

test("a build is asked for with exactly these arguments", () => {
  const plan = { context: "/c", tag: "agentbox:1", args: { AGENTS: "claude codex@1" }, labels: { "agentbox.hash": "1" }, hostNetwork: false };
  const common = ["--label", "agentbox.hash=1", "--build-arg", "AGENTS=claude codex@1", "/c"];
  expect(renderBuildArgv(plan, { kind: "classic" })).toEqual(["build", "--tag", "agentbox:1", "--force-rm", ...common]);
  expect(renderBuildArgv(plan, { kind: "buildkit" })).toEqual(["build", "--tag", "agentbox:1", "--force-rm", "--progress", "plain", ...common]);
  expect(renderBuildArgv({ ...plan, hostNetwork: true }, { kind: "podman" })).toEqual(["build", "--tag", "agentbox:1", "--force-rm", "--format", "docker", "--pull=never", "--network", "host", ...common]);
});
