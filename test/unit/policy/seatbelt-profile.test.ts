import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ConfigError } from "../../../policy/errors.ts";
import { planSeatbelt, renderSeatbeltProfile, type SeatbeltInput } from "../../../policy/seatbelt-profile.ts";

const usual: SeatbeltInput = {
  listeners: [{ address: "127.0.0.1", port: 3128 }, { address: "127.0.0.1", port: 8081 }],
  unixSockets: [],
  localBinding: false,
  agentSocket: undefined,
};

const render = (further: Partial<SeatbeltInput> = {}): string => renderSeatbeltProfile(planSeatbelt({ ...usual, ...further }));

function refuse(further: Partial<SeatbeltInput>): string[] {
  try {
    planSeatbelt({ ...usual, ...further });
  } catch (error) {
    if (error instanceof ConfigError) return error.complaints.map(({ what }) => what);
    throw error;
  }
  return [];
}

describe("a profile", () => {
  test("closes the network and unix sockets, and opens the ports of the proxy on localhost", () => {
    expect(render()).toBe(`(version 1)
(allow default)

; No network, no unix socket.
(deny network*)

; The proxy, which judges where it leads.
(allow network-outbound (remote ip "localhost:3128"))
(allow network-outbound (remote ip "localhost:8081"))
`);
  });

  test("opens exactly the sockets that are listed, under both names that macOS has for them, and lets programs listen where that is allowed", () => {
    expect(render({ unixSockets: ["/var/run/x.sock", "$SSH_AUTH_SOCK", "ssh-agent", "/Users/a/b c.sock"], localBinding: true, agentSocket: "/private/tmp/com.apple.launchd.x/Listeners" })).toBe(`(version 1)
(allow default)

; No network, no unix socket.
(deny network*)

; The proxy, which judges where it leads.
(allow network-outbound (remote ip "localhost:3128"))
(allow network-outbound (remote ip "localhost:8081"))

; allow_unix_sockets
(allow network-outbound (remote unix-socket (path-literal "/Users/a/b c.sock")))
(allow network-outbound (remote unix-socket (path-literal "/private/tmp/com.apple.launchd.x/Listeners")))
(allow network-outbound (remote unix-socket (path-literal "/private/var/run/x.sock")))
(allow network-outbound (remote unix-socket (path-literal "/var/run/x.sock")))

; allow_local_binding
(allow network-bind (local ip "localhost:*"))
(allow network-inbound (local ip "localhost:*"))
`);
  });

  test("keeps the agent closed where the environment names none, and says so", () => {
    expect(render({ unixSockets: ["ssh-agent"] })).toMatch(/8081"\)\)\n\n; SSH_AUTH_SOCK is not set: the ssh agent stays closed\n$/);
  });

  test("never opens outgoing connections by their local end: every connection has one", () => {
    expect(render({ localBinding: true })).not.toMatch(/network-outbound \(local/);
  });

  test("names a port once, and takes listeners on every address as listeners on localhost", () => {
    expect(planSeatbelt({ ...usual, listeners: [{ address: "0.0.0.0", port: 9 }, { address: "::", port: 7 }, { address: "::1", port: 9 }] }).ports).toEqual([7, 9]);
  });

  test("escapes what ends a string", () => {
    expect(render({ unixSockets: ['/tmp/a"b\\c'] })).toContain(String.raw`(path-literal "/tmp/a\"b\\c")`);
  });

  test.each<[string, Partial<SeatbeltInput>, RegExp]>([
    ["an address of the network", { listeners: [{ address: "192.168.1.5", port: 3128 }] }, /"192\.168\.1\.5", which a profile cannot name/],
    ["an agent at a relative path", { unixSockets: ["ssh-agent"], agentSocket: "agent.sock" }, /SSH_AUTH_SOCK is "agent\.sock"/],
    ["an agent whose path would end a line", { unixSockets: ["ssh-agent"], agentSocket: "/tmp/x\n(allow default)" }, /SSH_AUTH_SOCK is "\/tmp\/x\\n\(allow default\)"/],
    ["an agent behind steps upwards", { unixSockets: ["ssh-agent"], agentSocket: "/tmp/../var/run/x" }, /which is no socket/],
    ["a path that reads backwards", { unixSockets: ["/tmp/\u{202e}x"] }, /holds a character that nobody sees/],
    ["a relative path", { unixSockets: ["x.sock"] }, /"x\.sock" is not a socket/],
  ])("is refused for %s", (_row, further, said) => {
    expect(refuse(further).join("\n")).toMatch(said);
  });

  test("has one rule a line whatever a path holds, and none that opens more than one socket", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 60 }), fc.string({ unit: "binary", maxLength: 60 }), (path, agent) => {
        if (refuse({ unixSockets: [`/${path}`, "ssh-agent"], agentSocket: `/${agent}` }).length > 0) return;
        const added = render({ unixSockets: [`/${path}`, "ssh-agent"], agentSocket: `/${agent}` }).split("\n").slice(9, -1).filter((line) => line !== "" && line !== "; allow_unix_sockets");
        for (const line of added) expect(line).toMatch(/^\(allow network-outbound \(remote unix-socket \(path-literal "\/(?:[^"\\]|\\["\\])*"\)\)\)$/);
      }),
      { numRuns: 3000 },
    );
  });
});
