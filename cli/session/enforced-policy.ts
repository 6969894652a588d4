import path from "node:path";
import { POLICY_JSON_PATH } from "../../policy/box-spec.ts";
import { type PolicyView, policyViewSchema } from "../../policy/policy-view.ts";
import { readPlainFile } from "../workspace/plain-file.ts";

const MAX_BYTES = 64 * 1024 * 1024;

/** Reads what a running box was told about its policy, from the directory that it sees; undefined where that cannot be read. */
export function readEnforced(visible: string): PolicyView | undefined {
  const found = readPlainFile(path.join(visible, path.basename(POLICY_JSON_PATH)), MAX_BYTES);
  if ("flaw" in found) return undefined;
  try {
    return policyViewSchema.safeParse(JSON.parse(found.content.toString("utf8"))).data;
  } catch {
    return undefined;
  }
}
