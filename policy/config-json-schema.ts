import { z } from "zod";
import { configSchema } from "./config-schema.ts";

/** The JSON schema of a configuration file, for editors: the form of every key, and what it does. Words are judged by `parseConfig` alone. */
function makeJsonSchema(): Record<string, unknown> {
  const { $schema, ...rest } = z.toJSONSchema(configSchema, { target: "draft-7", io: "input" });
  return { $schema, title: "AgentBox configuration", description: "`.agentbox/config.toml` of a project, or `~/.agentbox/config.toml`", ...rest };
}

/** The text of `agentbox.schema.json`. */
export function renderJsonSchema(): string {
  return `${JSON.stringify(makeJsonSchema(), undefined, 2)}\n`;
}
