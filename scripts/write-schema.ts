import { writeFileSync } from "node:fs";
import path from "node:path";
import { renderJsonSchema } from "../policy/config-json-schema.ts";

/** Writes `agentbox.schema.json` anew; to be run after every change of policy/config-schema.ts, a test compares the two. */
writeFileSync(path.join(import.meta.dirname, "..", "agentbox.schema.json"), renderJsonSchema());
