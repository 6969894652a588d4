import { z } from "zod";
import { AGENT_PROFILES } from "./agent-profile-data.ts";
import { UsageError } from "./errors.ts";

const relativePath = z.string().regex(/^[^/].*$/);
const environment = z.record(z.string(), z.string());

/** What the product knows about one agent. Paths are relative to the home directory of the box's user. */
export const agentProfileSchema = z.strictObject({
  name: z.string(),
  title: z.string(),
  /** Package in the npm registry; null for the plain shell. */
  package: z.string().nullable(),
  /** The program and the arguments every run gets. */
  command: z.array(z.string()).min(1),
  /** Arguments that let the agent work without asking: the box is the sandbox. */
  fullPermissionArgs: z.array(z.string()),
  /** Further arguments while the firewall is on. */
  firewalledArgs: z.array(z.string()),
  /** Entries in the grammar of `allowlists/`. */
  hosts: z.array(z.strictObject({ entry: z.string(), why: z.string() })),
  /** Takes the place of api.anthropic.com among the critical services; null keeps the list as shipped. */
  critical: z.string().nullable(),
  /** Directories kept in one volume per agent and project. */
  state: z.array(relativePath),
  /** Files shared between projects, all of them inside a state directory. */
  credentials: z.array(relativePath),
  login: z.strictObject({
    args: z.array(z.string()),
    /** Port of the sign-in callback, published on 127.0.0.1 of the host; null where a code is typed in. */
    callbackPort: z.int().min(1).max(65_535).nullable(),
    /** Whether the callback server listens on the box's loopback only, where a published port does not arrive. */
    callbackOnLoopback: z.boolean(),
  }),
  /** Set in every box. */
  environment,
  /** Set in every box; each value is a path that becomes absolute below the home directory. */
  homeEnvironment: z.record(z.string(), relativePath),
  /** Set while the firewall is on: telemetry off, because clients of a blocked host hang or retry for ever. */
  firewalledEnvironment: environment,
  /** Set when the agent runs as uid 0. */
  rootEnvironment: environment,
});

export type AgentProfile = z.infer<typeof agentProfileSchema>;

/** The agent that runs when none is named. */
export const DEFAULT_AGENT = "claude";

/** Finds a profile by its name; an unknown name is a `UsageError` that lists the known ones. */
export function findAgentProfile(name: string): AgentProfile {
  const profile = AGENT_PROFILES.find((candidate) => candidate.name === name);
  if (profile !== undefined) return profile;
  const names = AGENT_PROFILES.map((candidate) => candidate.name).join(", ");
  throw new UsageError({ what: `there is no agent ${JSON.stringify(name)}`, expected: `one of ${names}`, fix: "correct the name, or run it in a shell box: agentbox run -- COMMAND" });
}

/** Works out the variables of one run; `home` is the absolute home directory of the box's user. */
export function agentEnvironment(profile: AgentProfile, run: { home: string; firewall: boolean; root: boolean }): Record<string, string> {
  const paths = Object.entries(profile.homeEnvironment).map(([key, path]) => [key, `${run.home}/${path}`] as const);
  return {
    ...profile.environment,
    ...Object.fromEntries(paths),
    ...(run.firewall ? profile.firewalledEnvironment : {}),
    ...(run.root ? profile.rootEnvironment : {}),
  };
}
