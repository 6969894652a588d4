import { describe, expect, it } from "vitest";
import { buildAgentArgv } from "../../../entrypoint/exec-agent.ts";
import type { BoxSpec } from "../../../policy/box-spec.ts";
import { emptyDocument } from "../../../policy/policy-document.ts";

const SPEC: BoxSpec = {
  version: 2,
  session: "s",
  firewall: true,
  mode: "allowlist",
  role: "box",
  policy: emptyDocument({ name: "shell", hosts: [], critical: null }),
  user: { uid: 501, gid: 20, home: "/home/agent" },
  admin: false,
  command: ["claude", "--help"],
  cwd: "/work dir",
  env: { PATH: "/bin", LD_PRELOAD: "/evil.so" },
  dns: { upstreams: [] },
  published: [],
  gateways: [],
};

const DROP = ["--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs", "--"];

describe("the argv that a box turns into", () => {
  it("gives up every privilege before a variable of the user is set", () => {
    expect(buildAgentArgv(SPEC)).toEqual([
      ...["/usr/bin/setpriv", "--reuid", "501", "--regid", "20", ...DROP],
      ...["/usr/bin/env", "--ignore-environment", "--default-signal", "--chdir=/work dir", "PATH=/bin", "LD_PRELOAD=/evil.so"],
      ...["claude", "--help"],
    ]);
  });

  it("is root without privileges for an admin while the firewall is on", () => {
    expect(buildAgentArgv({ ...SPEC, admin: true }).slice(0, 11)).toEqual(["/usr/bin/setpriv", "--reuid", "0", "--regid", "0", ...DROP]);
  });

  it("leaves an admin the engine's privileges only where there is no firewall", () => {
    expect(buildAgentArgv({ ...SPEC, admin: true, firewall: false })[0]).toBe("/usr/bin/env");
    expect(buildAgentArgv({ ...SPEC, firewall: false })[0]).toBe("/usr/bin/setpriv");
  });

  it("passes a program whose path holds an equals sign through a fixed shell line", () => {
    expect(buildAgentArgv({ ...SPEC, command: ["/a=b", "$(id)"] }).slice(-5)).toEqual(["/bin/sh", "-c", 'exec "$0" "$@"', "/a=b", "$(id)"]);
  });
});
