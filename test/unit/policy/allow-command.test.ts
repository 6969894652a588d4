import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { commandOf, renderAllowCommand, renderAlways, type Refused } from "../../../policy/allow-command.ts";
import { parseEntry } from "../../../policy/entry.ts";
import type { PolicyRule } from "../../../policy/policy.ts";

function deny(tier: "block" | "rules", ports: PolicyRule["ports"] = "any"): PolicyRule {
  return { index: 0, tier, action: "deny", match: { kind: "glob", glob: "*.evil.*" }, ports, text: "*.evil.*", origins: [{ label: "c.toml", text: "*.evil.*", place: { file: "c.toml", line: 7 } }], protocol: "web" };
}

describe("the command that would allow it", () => {
  test.each<[string, Refused, string]>([
    ["a name asked of the resolver", { host: "example.com", port: null, reason: "not_allowed" }, "agentbox policy allow example.com"],
    ["a name on the usual port", { host: "example.com", port: 443, reason: "not_allowed" }, "agentbox policy allow example.com"],
    ["a name on another port", { host: "example.com", port: 8443, reason: "not_allowed" }, "agentbox policy allow example.com:8443"],
    ["a public address", { host: "140.82.112.3", port: 22, reason: "not_allowed" }, "agentbox policy allow 140.82.112.3:22"],
    ["an IPv6 address, quoted for the shell", { host: "2606:50c0::1", port: 22, reason: "not_allowed" }, "agentbox policy allow '[2606:50c0::1]:22'"],
    ["an IPv6 address without a port", { host: "2606:50c0::1", reason: "not_allowed" }, "agentbox policy allow 2606:50c0::1"],
  ])("names %s", (_row, refused, command) => {
    expect(renderAllowCommand(refused)).toEqual({ command });
  });

  test.each<[string, Refused, string]>([
    ["a malformed host", { host: '"git hub"', reason: "denied" }, "malformed host"],
    ["a malformed host that nothing denied", { host: "x;reboot", reason: "not_allowed" }, "malformed host"],
    ["a malformed port", { host: "example.com", reason: "denied" }, "malformed question"],
    ["a blocked host, but the block", { host: "a.evil.org", reason: "denied", rule: deny("block") }, 'remove the block "*.evil.*" (c.toml:7)'],
    ["a host that a rule denies, but the rule", { host: "a.evil.org", reason: "denied", rule: deny("rules") }, 'change the rule "deny *.evil.*" (c.toml:7)'],
    ["a port that a setting closed", { host: "a.evil.org", port: 22, reason: "denied", rule: deny("block", [22]) }, "port 22 of every host is closed by c.toml:7"],
    ["a name that leads inside", { host: "nas.example.com", port: 80, reason: "not_allowed_local" }, '{ host = "nas.example.com", ports = [80], private = true }'],
    ["a dotless name", { host: "db", port: 5432, reason: "not_allowed" }, '{ host = "db", ports = [5432], private = true }'],
    ["a private address", { host: "10.1.2.3", port: 5432, reason: "not_allowed" }, 'list "10.1.2.3:5432"'],
    ["the metadata address", { host: "169.254.169.254", port: 80, reason: "not_allowed" }, "nothing in a box should need it"],
    ["a reverse name", { host: "1.2.0.192.in-addr.arpa", reason: "not_allowed" }, "not answered"],
    ["a method, but the mode", { host: "example.com", port: 80, reason: "method_not_allowed" }, 'set mode = "full"'],
    ["a tunnel in limited mode, but interception", { host: "example.com", port: 443, reason: "mitm_required" }, "enabled = true in [network_proxy.mitm]"],
    ["a connection that names two hosts", { host: "example.com", port: 443, reason: "host_mismatch" }, "no rule allows that"],
    ["a proxy that is off", { host: "example.com", port: 443, reason: "proxy_disabled" }, "set enabled = true in [network_proxy]"],
    ["a socket, but the list of sockets", { host: "example.com", reason: "unix_socket_unsupported" }, "allow_unix_sockets"],
    ["what is allowed", { host: "example.com", reason: "allowed" }, "allowed already"],
  ])("is not offered for %s", (_row, refused, advice) => {
    const answer = renderAllowCommand(refused);
    expect("advice" in answer && answer.advice).toContain(advice);
    expect(commandOf(answer)).toBeNull();
  });

  test.each<[string, Refused, string]>([
    ["a name", { host: "example.com", port: 8443, reason: "not_allowed" }, "ctl allow example.com:8443"],
    ["a name that leads inside", { host: "nas.example.com", port: 80, reason: "not_allowed_local" }, "list the address in allow_private of [network_proxy.policy], or set allow_local_binding = true"],
    ["a dotless name", { host: "db", port: 5432, reason: "not_allowed" }, "list its address in allowed_domains"],
    ["a private address", { host: "10.1.2.3", port: 5432, reason: "not_allowed" }, 'list "10.1.2.3:5432" in allowed_domains if clients shall reach it'],
    ["this machine by its address", { host: "127.0.0.1", port: 8080, reason: "not_allowed" }, 'it is this machine: list "127.0.0.1:8080" in allowed_domains, and set allow_local_binding = true'],
    ["the metadata service", { host: "169.254.169.254", port: 80, reason: "not_allowed" }, "no list opens it"],
    ["a host that is passed through", { host: "example.com", port: 443, reason: "mitm_required" }, "take the host out of its passthrough list"],
  ])("speaks of another file where the proxy stands alone: %s", (_row, refused, said) => {
    const place = { command: "ctl allow", hosts: "allowed_domains", ranges: "allow_private of [network_proxy.policy]", who: "clients", privateHosts: false };
    const answer = renderAllowCommand(refused, place);
    expect("command" in answer ? answer.command : answer.advice).toContain(said);
  });

  test("holds nothing that a shell would obey, whatever host an agent asks for", () => {
    const hostile = fc.tuple(fc.string({ unit: "binary" }), fc.constantFrom("", "example.com", "$(id)", "`id`", ";id", "\n", "'", "[", "-x", "2606::1")).map((parts) => parts.join(""));
    fc.assert(
      fc.property(hostile, fc.option(fc.integer({ min: 1, max: 65_535 })), (host, port) => {
        const command = commandOf(renderAllowCommand({ host, port, reason: "not_allowed" }));
        expect(command ?? "agentbox policy allow x").toMatch(/^agentbox policy allow (?:[a-z0-9_:][a-z0-9._:-]*|'[[\]0-9a-f:]+')$/);
      }),
      { numRuns: 5000 },
    );
  });

  test("is for the file where no box runs, and says so once", () => {
    expect(renderAlways("agentbox policy allow example.com:80")).toBe("agentbox policy allow --always example.com:80");
    expect(renderAlways("agentbox policy allow --always example.com")).toBe("agentbox policy allow --always example.com");
  });

  test("names an entry that the lists accept", () => {
    for (const host of ["example.com", "140.82.112.3", "2606:50c0::1"]) {
      const command = commandOf(renderAllowCommand({ host, port: 8443, reason: "not_allowed" })) ?? "";
      const word = command.replace("agentbox policy allow ", "").replaceAll("'", "");
      const entry = parseEntry(word, "list");
      expect(entry.ok && entry.value.ports).toEqual([8443]);
    }
  });
});
