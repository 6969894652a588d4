import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { buildBoxPolicy } from "../../../policy/box-policy.ts";
import { buildDocument, decideMode } from "../../../policy/config-document.ts";
import { parseConfig } from "../../../policy/config-file.ts";
import { decide } from "../../../policy/decide.ts";

// The seed maps three words of SandboxPolicy.network to a network of Docker's. The guard has no types of its own
// for that: they are the ones that boxes use, and this table holds those to the seed.

const root = path.join(import.meta.dirname, "../../..");
const read = (file: string): string => readFileSync(path.join(root, "allowlists", file), "utf8");
const emptied = (text: string): string => text.replaceAll(/=\([^]*?^\)/gm, "=()");

/** What a box of this configuration gets, in the seed's words. */
function mapNetwork(text: string): string {
  const project = parseConfig({ file: ".agentbox/config.toml", text });
  if (decideMode(project.config).mode === "full") return "bridge";
  const document = buildDocument({ project, user: undefined, presets: [], allowFile: undefined, agent: { name: "none", hosts: [], critical: null } });
  const box = buildBoxPolicy({ document, lists: { services: emptied(read("services.sh")), github: emptied(read("github.sh")) }, isPublicSuffix: () => false, now: 0 });
  const reached = ["a.example.com", "b.example.com"].filter((host) => decide(box.policy, { host, port: 443 }).action === "allow");
  return box.opensNothing ? "none" : `bridge and firewall, ${reached.join(" ")}`;
}

test.each([
  { name: "none is no network", text: "[network]\nmode='none'", network: "none" },
  { name: "none with hosts is no network", text: "[network]\nmode='none'\nallow_hosts=['a.example.com']", network: "none" },
  { name: "an allowlist with hosts is a bridge with the firewall, and these hosts", text: "[network]\nmode='allowlist'\nallow_hosts=['a.example.com']", network: "bridge and firewall, a.example.com" },
  { name: "an allowlist without hosts is no network", text: "[network]\nmode='allowlist'", network: "none" },
  { name: "an allowlist whose only host is blocked is no network", text: "[network]\nmode='allowlist'\nallow_hosts=['a.example.com']\nblock_hosts=['a.example.com']", network: "none" },
  { name: "full is a bridge without a firewall", text: "[network]\nmode='full'", network: "bridge" },
])("$name", ({ text, network }) => {
  expect(mapNetwork(text)).toBe(network);
});
