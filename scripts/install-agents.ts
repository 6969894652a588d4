import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { findAgentProfile } from "../policy/agent-profile.ts";

/**
 * Runs once, in the image build: installs the agents named on its command line (`claude`, `codex@1.2.3`)
 * from the npm registry. Profiles without a package, such as the plain shell, need nothing.
 */
const packages = process.argv.slice(2).flatMap((spec) => {
  const [name = "", version = "latest"] = spec.split("@", 2);
  const { package: npmPackage } = findAgentProfile(name);
  return npmPackage === null ? [] : [{ npmPackage, spec: `${npmPackage}@${version}` }];
});

if (packages.length > 0) {
  const cache = "/tmp/agents-npm-cache";
  const argv = [
    "install",
    "--global",
    "--no-audit",
    "--no-fund",
    "--no-update-notifier",
    `--cache=${cache}`,
    // Agents ship a native program that their own install step puts in place.
    `--allow-scripts=${packages.map(({ npmPackage }) => npmPackage).join(",")}`,
    ...packages.map(({ spec }) => spec),
  ];
  execFileSync("npm", argv, { stdio: "inherit" });
  rmSync(cache, { recursive: true, force: true });
}
