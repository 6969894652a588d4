import { describe, expect, test } from "vitest";
import { renderAllowCommand } from "../../../policy/allow-command.ts";
import { type Denial, renderJsonDenial, renderTextDenial } from "../../../policy/denial.ts";
import { REASONS } from "../../../policy/reason.ts";

function denial(reason: Denial["reason"]): Denial {
  return { host: "api.example.com", port: 443, reason, rule: undefined, detail: undefined, answer: renderAllowCommand({ host: "api.example.com", port: 443, reason }) };
}

describe("what a refused client is told", () => {
  test.each<[Denial["reason"], number, string | undefined]>([
    ["not_allowed", 403, "blocked-by-allowlist"],
    ["not_allowed_local", 403, "blocked-by-allowlist"],
    ["denied", 403, "blocked-by-denylist"],
    ["method_not_allowed", 403, "blocked-by-method-policy"],
    ["mitm_required", 403, "blocked-by-mitm-required"],
    ["host_mismatch", 403, "blocked-by-policy"],
    ["proxy_disabled", 503, undefined],
  ])("%s is %i with %s", (reason, status, error) => {
    expect(renderJsonDenial(denial(reason))).toMatchObject({ status, error, type: "application/json" });
    expect(renderTextDenial(denial(reason))).toMatchObject({ status, error, type: "text/plain; charset=utf-8" });
  });

  test("the body of a plain request is JSON with the command that would allow it", () => {
    expect(JSON.parse(renderJsonDenial(denial("not_allowed")).body)).toEqual({ status: "blocked", host: "api.example.com", port: 443, reason: "not_allowed", rule: null, hint: "agentbox policy allow api.example.com" });
  });

  test("the body of a tunnel is one line of text with the same words", () => {
    expect(renderTextDenial(denial("not_allowed")).body).toBe("AgentBox blocked api.example.com:443: not_allowed; to allow it, a human runs on the host: agentbox policy allow api.example.com\n");
  });

  test("no refusal asks for a password", () => {
    const reasons = REASONS.filter((reason) => reason !== "allowed");
    expect(reasons.map((reason) => renderJsonDenial(denial(reason)).status)).not.toContain(407);
  });
});
