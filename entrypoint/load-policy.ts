import { readFileSync } from "node:fs";
import { type BoxPolicy, loadBoxPolicy } from "../policy/box-policy.ts";
import type { BoxSpec } from "../policy/box-spec.ts";
import type { ListTexts } from "../policy/policy-document.ts";
import { refuseUnreadable } from "../policy/services-file.ts";

/** Where the image keeps the owner's lists. */
export const ALLOWLIST_DIR = "/usr/local/share/agentbox/allowlists";

/**
 * Reads the lists of the image from `dir` and builds the policy of `spec`; keeper and proxy get the same texts.
 *
 * Errors: ConfigError with every mistake, each with file and line.
 */
export async function loadPolicy({ policy: document }: Pick<BoxSpec, "policy">, dir: string): Promise<{ box: BoxPolicy; lists: ListTexts }> {
  const lists = { services: readList(dir, "services.sh"), github: readList(dir, "github.sh") };
  return { box: await loadBoxPolicy({ document, lists, now: Date.now() }), lists };
}

function readList(dir: string, name: string): string {
  try {
    return readFileSync(`${dir}/${name}`, "utf8");
  } catch (error) {
    throw refuseUnreadable(`allowlists/${name}`, error);
  }
}
