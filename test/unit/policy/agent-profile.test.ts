import { describe, expect, test } from "vitest";
import { AGENT_PROFILES } from "../../../policy/agent-profile-data.ts";
import { agentEnvironment, agentProfileSchema, findAgentProfile } from "../../../policy/agent-profile.ts";
import { buildEffectiveList } from "../../../policy/effective-list.ts";
import { UsageError } from "../../../policy/errors.ts";
import { isPublicSuffix } from "../../../policy/public-suffix.ts";

describe.each(AGENT_PROFILES)("the profile of $name", (profile) => {
  test("has the shape that the schema says", () => {
    expect(agentProfileSchema.parse(profile)).toEqual(profile);
  });

  test("has hosts that can be merged, its critical host among them", () => {
    const words = profile.hosts.map(({ entry }) => ({ text: entry }));
    const critical = profile.critical === null ? [] : [{ text: "api.anthropic.com", place: { file: "services.sh", line: 1 } }];
    const list = buildEffectiveList({ sources: [{ label: profile.name, surface: "allowlist-file", words }], critical, agent: profile, isPublicSuffix });
    expect(list.critical.map(({ name }) => name)).toEqual(profile.critical === null ? [] : [profile.critical]);
  });

  test("shares only files that lie in a kept directory", () => {
    for (const file of profile.credentials) expect(profile.state.some((directory) => file.startsWith(`${directory}/`))).toBe(true);
  });

  test("tells why each host is needed", () => {
    expect(profile.hosts.every(({ why }) => why.length > 3)).toBe(true);
  });
});

describe("findAgentProfile", () => {
  test("refuses an unknown agent and lists the known ones", () => {
    expect(() => findAgentProfile("cursor")).toThrow(UsageError);
    expect(() => findAgentProfile("cursor")).toThrow(/claude, codex, gemini, opencode, copilot, shell/);
  });
});

describe("agentEnvironment", () => {
  const claude = findAgentProfile("claude");

  test("switches telemetry off only while the firewall is on", () => {
    expect(agentEnvironment(claude, { home: "/home/u", firewall: true, root: false })["DISABLE_TELEMETRY"]).toBe("1");
    expect(agentEnvironment(claude, { home: "/home/u", firewall: false, root: false })["DISABLE_TELEMETRY"]).toBeUndefined();
  });

  test("makes paths absolute below the home directory", () => {
    expect(agentEnvironment(claude, { home: "/home/u", firewall: false, root: false })["CLAUDE_CONFIG_DIR"]).toBe("/home/u/.claude");
  });

  test("tells Claude that it is in a sandbox only when it is root", () => {
    expect(agentEnvironment(claude, { home: "/root", firewall: true, root: true })["IS_SANDBOX"]).toBe("1");
    expect(agentEnvironment(claude, { home: "/home/u", firewall: true, root: false })["IS_SANDBOX"]).toBeUndefined();
  });
});
