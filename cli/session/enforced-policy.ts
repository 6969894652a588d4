import path from "node:path";
import { z } from "zod";
import { POLICY_JSON_PATH } from "../../policy/box-spec.ts";
import { type PolicyView, policyViewSchema } from "../../policy/policy-view.ts";
import { readPlainFile } from "../workspace/plain-file.ts";

const MAX_BYTES = 64 * 1024 * 1024;
/** Without a look at its ten thousand rules. */
const kindSchema = z.object({ mode: policyViewSchema.shape.mode, enforcement: policyViewSchema.shape.enforcement });

/** Reads whether a running box has a network at all, and who decides about it, from the directory that it sees; undefined where that cannot be read. */
export function readEnforcedKind(visible: string): Pick<PolicyView, "mode" | "enforcement"> | undefined {
  return kindSchema.safeParse(readJson(visible)).data;
}

/** Reads what a running box was told about its policy, from the directory that it sees; undefined where that cannot be read. */
export function readEnforced(visible: string): PolicyView | undefined {
  return policyViewSchema.safeParse(readJson(visible)).data;
}

function readJson(visible: string): unknown {
  const found = readPlainFile(path.join(visible, path.basename(POLICY_JSON_PATH)), MAX_BYTES);
  if ("flaw" in found) return undefined;
  try {
    return JSON.parse(found.content.toString("utf8"));
  } catch {
    return undefined;
  }
}
