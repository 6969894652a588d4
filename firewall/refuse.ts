import type { Match, Rule } from "./rule.ts";

/** TCP always by reset: a client that gets an ICMP error for a SYN waits a second for nothing. */
export function refuse(why: string, match: Match = {}): Rule[] {
  if (match.protocol !== undefined) return [{ why, match, verdict: match.protocol === "tcp" ? "tcp-reset" : "reject" }];
  return [
    { why, match: { ...match, protocol: "tcp" }, verdict: "tcp-reset" },
    { why, match, verdict: "reject" },
  ];
}

/** As `refuse`, and the keeper is told. */
export function refuseAloud(why: string, match: Match): Rule[] {
  return [{ why, match, verdict: "log-refused" }, ...refuse(why, match)];
}
