import { z } from "zod";
import { judgedString, plainText } from "./config-words.ts";
import { quote } from "./parsed.ts";
import { parsePathPattern } from "./sandbox-pattern.ts";
import { DEFAULT_LARGE, DEFAULT_TIMEOUT, parseAccess, parseExtension, parseRuleId, parseSize, SANDBOX_INTENTS, SANDBOX_TAGS } from "./sandbox-words.ts";

const size = judgedString((text) => parseSize(text));
const count = z.int().min(1).max(Number.MAX_SAFE_INTEGER);

const rule = z.strictObject({
  id: judgedString((text) => parseRuleId(text)).describe("The rule's name in questions and in the log; each once."),
  path: judgedString((text) => parsePathPattern(text)).optional().describe("Paths that it is about, below each grant's root or absolute: * and ? within a name, ** over names. All when left out."),
  intent: z.array(z.enum(SANDBOX_INTENTS)).min(1).optional().describe("Operations that it is about; all when left out."),
  min_size: size.optional().describe("Only from this size on, such as 1m."),
  extension: z.array(judgedString((text) => parseExtension(text))).min(1).optional().describe("Only names that end so, such as .env."),
  tags: z.array(z.enum(SANDBOX_TAGS)).min(1).optional().describe("Only operations with one of these risks."),
  action: z.enum(["allow", "deny", "confirm"]).describe("confirm: a human is asked."),
});

const grant = z.strictObject({
  root: plainText.describe("The folder: absolute, ~/…, or relative to the project."),
  access: judgedString((text) => parseAccess(text)).describe("What may be done below it: letters of rwcd, for read, write, create, delete."),
  hidden: z.boolean().optional().describe("Hidden and system names as well, such as .git."),
  hard_links: z.boolean().optional().describe("Files with several names as well, which a package store has."),
  trash: z.boolean().optional().describe("What is deleted goes to a trash that it can be restored from."),
  output: z.boolean().optional().describe("Results of a task are written here."),
});

/** Makes the schema of `[sandbox]`, the file guard's rules. */
export function makeSandboxSchema() {
  return z.strictObject({
    rules: z.array(rule).check(judgeIds).optional().describe("Ordered rules; the first that matches decides. What the guard asks about itself (delete, move, rename, overwrite, large files) is asked all the same."),
    grants: z.array(grant).optional().describe("Folders that `agentbox mcp` opens when it is told none."),
    large: size.optional().describe(`From this size on a file is large, and a human is asked; ${DEFAULT_LARGE} when left out.`),
    timeout: z.int().min(1).max(86_400).optional().describe(`Seconds that a human has to answer, after which it is no; ${DEFAULT_TIMEOUT} when left out.`),
    quota_bytes: count.optional().describe("The most bytes that a session may write."),
    quota_files: count.optional().describe("The most files that a session may write."),
  });
}

export type SandboxConfig = z.infer<ReturnType<typeof makeSandboxSchema>>;
/** A rule as it is written. */
export type SandboxRuleText = NonNullable<SandboxConfig["rules"]>[number];

/** A log that names a rule must name one. */
function judgeIds(context: z.core.ParsePayload<{ id: string }[]>): void {
  const known = new Set<string>();
  context.value.forEach(({ id }, index) => {
    if (known.has(id)) context.issues.push({ code: "custom", input: id, message: `there is a rule ${quote(id)} already`, path: [index, "id"], params: { expected: "an id of its own" } });
    known.add(id);
  });
}
