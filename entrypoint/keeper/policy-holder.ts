import { type BoxPolicy, loadBoxPolicy } from "../../policy/box-policy.ts";
import { ConfigError, type Complaint } from "../../policy/errors.ts";
import type { ListTexts, PolicyDocument } from "../../policy/policy-document.ts";
import { renderRule } from "../../policy/policy.ts";

/** A policy with what it was made of; `version` counts the policies of a box, from 1. */
export type HeldPolicy = { version: number; since: number; document: PolicyDocument; box: BoxPolicy };

export type Built = { ok: true; policy: HeldPolicy } | { ok: false; complaints: readonly Complaint[] };

/** Builds a policy without putting it in force; mistakes of the document are an answer, not an error. */
export async function buildPolicy(document: PolicyDocument, lists: ListTexts, version: number): Promise<Built> {
  try {
    const now = Date.now();
    return { ok: true, policy: { version, since: now, document, box: await loadBoxPolicy({ document, lists, now }) } };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { ok: false, complaints: error.complaints };
  }
}

/**
 * What of a running box no new policy changes: its rules, sockets and environment were made at the start. What the
 * proxy alone knows (methods, passthrough, sizes) may change.
 */
export function refuseFixed(present: PolicyDocument, next: PolicyDocument): Complaint[] {
  // Of a wall that is not there nothing depends, and one that comes or goes is enough to say.
  const judges = present.enforcement === "name" && next.enforcement === "name";
  const [before, after] = [describeFixed(present, judges), describeFixed(next, judges)];
  return Object.entries(before).flatMap(([name, value]) => {
    if (after[name] === value) return [];
    return [{ what: `${name} cannot change while the box runs`, expected: `${name} = ${value}, as at its start`, fix: "start the box again" }];
  });
}

/** The keys as their owner writes them, each with its value. */
function describeFixed({ ssh, report, enforcement, nameWall: { intercept, httpPort, socksPort, upstream } }: PolicyDocument, judges: boolean): Record<string, string> {
  const always = { "network.ssh": ssh, "network.report": String(report), "network.enforcement": enforcement };
  if (!judges) return always;
  return {
    ...always,
    "network_proxy.mitm.enabled": String(intercept),
    "network_proxy.proxy_url": String(httpPort),
    "network_proxy.socks_url": String(socksPort),
    "network_proxy.upstream_proxy": upstream === null ? "none" : `${upstream.tls ? "https" : "http"}://${upstream.host}:${upstream.port}`,
  };
}

/** The rules that the second policy has beyond the first, and those that it lacks, as a user reads them. */
export function compareRules(before: BoxPolicy, after: BoxPolicy): { added: string[]; removed: string[] } {
  const [old, fresh] = [renderRules(before), renderRules(after)];
  return { added: [...fresh].filter((text) => !old.has(text)), removed: [...old].filter((text) => !fresh.has(text)) };
}

function renderRules({ policy }: BoxPolicy): Set<string> {
  return new Set(policy.rules.map((rule) => renderRule(rule)));
}
