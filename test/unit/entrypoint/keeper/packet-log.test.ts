import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parsePacket } from "../../../../entrypoint/keeper/packet-log.ts";

// The keys are those of ulogd 2.0.8.
const LINE = { "oob.prefix": "agentbox-refused", "oob.uid": 1000, "ip.protocol": 6, src_ip: "172.17.0.2", dest_ip: "93.184.216.34", src_port: 57_080, dest_port: 443 };

describe("a line of ulogd", () => {
  const rows: [string, object, object | undefined][] = [
    ["tells of a TCP packet that was refused", LINE, { verdict: "refused", transport: "tcp", address: "93.184.216.34", port: 443, uid: 1000 }],
    ["tells of a packet that report mode let through", { ...LINE, "oob.prefix": "agentbox-report" }, { verdict: "report", transport: "tcp", address: "93.184.216.34", port: 443, uid: 1000 }],
    ["has no port for ICMP", { ...LINE, "ip.protocol": 1, dest_port: undefined }, { verdict: "refused", transport: "icmp", address: "93.184.216.34", port: null, uid: 1000 }],
    ["is left out when no program sent the packet", { ...LINE, "oob.uid": undefined }, undefined],
  ];
  it.each(rows)("%s", (_case, line, packet) => {
    expect(parsePacket(JSON.stringify(line))).toEqual(packet);
  });

  it("of any other kind is left out, and never ends the keeper", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        expect(parsePacket(text)).toBeUndefined();
      }),
    );
  });
});
