import { expect, test } from "vitest";
import { renderLimits } from "../../../../cli/engine/podman-host.ts";

const limits = `Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max processes             95990                unlimited            processes
Max open files            1024                 20000                files
`;

test("a box gets no more than the host's hard limit, and no more than Podman itself keeps", () => {
  expect(renderLimits(limits)).toEqual(["--ulimit", "nofile=20000:20000", "--ulimit", "nproc=32768:32768"]);
});

test("a host that tells nothing sets nothing", () => {
  expect(renderLimits("")).toEqual([]);
});
