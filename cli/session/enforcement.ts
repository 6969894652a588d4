import { UsageError } from "../../policy/errors.ts";
import type { PolicyDocument } from "../../policy/policy-document.ts";

/**
 * Puts what was typed, or what a running box has, in place of the enforcement that the configuration says;
 * undefined leaves that. Throws UsageError for a policy that needs names where addresses shall decide.
 */
export function withEnforcement(document: PolicyDocument, enforcement: PolicyDocument["enforcement"] | undefined): PolicyDocument {
  if (enforcement === undefined || enforcement === document.enforcement) return document;
  if (enforcement === "address" && document.base === "deny-list") {
    throw new UsageError({ what: '--enforcement address cannot serve policy.mode = "deny-list": a denied name would stay reachable by its address', expected: "an allowlist, or names that are judged", fix: "leave --enforcement out" });
  }
  return { ...document, enforcement };
}
