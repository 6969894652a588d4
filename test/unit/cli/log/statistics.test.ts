import { describe, expect, test } from "vitest";
import { renderBytes, renderStatistics } from "../../../../cli/commands/logs-stats.ts";
import { collectStatistics, statisticsSchema } from "../../../../cli/log/statistics.ts";
import type { DecisionRecord } from "../../../../policy/decision-record.ts";

type Decided = Extract<DecisionRecord, { kind: "decision" }>;
type Traffic = Extract<DecisionRecord, { kind: "traffic" }>;

const timeOf = (seq: number): string => `2026-11-21T04:00:${String(seq).padStart(2, "0")}.000Z`;

function decided(seq: number, host: string, more: Partial<Decided> = {}): Decided {
  return {
    kind: "decision", time: timeOf(seq), seq, session: "s", protocol: "dns", host, port: null, type: "A", addresses: [],
    action: "allow", reason: "allowed", rule: null, source: null, detail: null, hint: null, client: null, count: 1, ...more,
  };
}

function traffic(seq: number, host: string, more: Partial<Traffic> = {}): Traffic {
  return { kind: "traffic", time: timeOf(seq), seq, session: "s", protocol: "tls-sni", method: null, host, port: 443, bytesUp: 10, bytesDown: 100, durationMs: 5, flows: 1, cut: false, ...more };
}

const event: DecisionRecord = { kind: "event", time: timeOf(9), seq: 9, session: "s", event: "stop", detail: "", added: [], removed: [] };

describe("what a session did", () => {
  test("is summed up by host: decisions with their repeats, bytes and connections of all protocols, first and last time", () => {
    const { hosts } = collectStatistics([
      decided(1, "a.example"),
      decided(2, "a.example", { protocol: "tls-sni", port: 443, count: 4 }),
      decided(3, "a.example", { protocol: "http", port: 80, action: "deny", reason: "method_not_allowed", method: "POST", count: 2 }),
      decided(4, "a.example", { protocol: "address", port: 22, action: "report", reason: "not_allowed" }),
      traffic(5, "a.example", { flows: 3 }),
      traffic(6, "a.example", { protocol: "http", port: 80, method: "GET", bytesUp: 1, bytesDown: 2 }),
      event,
    ]);
    expect(hosts).toEqual([
      {
        host: "a.example", ports: [22, 80, 443], allowed: 5, refused: 2, reported: 1, bytesUp: 11, bytesDown: 102, flows: 4, first: timeOf(1), last: timeOf(6),
        protocols: [
          { protocol: "address", allowed: 0, refused: 0, reported: 1, bytesUp: 0, bytesDown: 0, flows: 0 },
          { protocol: "dns", allowed: 1, refused: 0, reported: 0, bytesUp: 0, bytesDown: 0, flows: 0 },
          { protocol: "http", allowed: 0, refused: 2, reported: 0, bytesUp: 1, bytesDown: 2, flows: 1 },
          { protocol: "tls-sni", allowed: 4, refused: 0, reported: 0, bytesUp: 10, bytesDown: 100, flows: 3 },
        ],
      },
    ]);
  });

  test("lists hosts by their bytes, those without by their decisions, then by name", () => {
    const { hosts } = collectStatistics([decided(1, "c.example"), decided(2, "b.example"), decided(3, "often.example", { action: "deny", count: 9 }), traffic(4, "small.example", { bytesUp: 0, bytesDown: 1 }), traffic(5, "large.example")]);
    expect(hosts.map(({ host }) => host)).toEqual(["large.example", "small.example", "often.example", "b.example", "c.example"]);
  });

  test("has a total of everything, and events count nothing", () => {
    const { total, first, last } = collectStatistics([decided(1, "a.example"), traffic(2, "b.example"), decided(3, "c.example", { action: "deny", count: 2 }), event]);
    expect({ total, first, last }).toEqual({ total: { allowed: 1, refused: 2, reported: 0, bytesUp: 10, bytesDown: 100, flows: 1 }, first: timeOf(1), last: timeOf(3) });
  });

  test("may be nothing", () => {
    const statistics = collectStatistics([event]);
    expect(statisticsSchema.parse({ version: 1, session: null, running: false, ...statistics, gone: 0, unread: 0 })).toMatchObject({ hosts: [], first: null, last: null });
    expect(renderStatistics(statistics)).toEqual(["Nothing was asked for."]);
  });
});

test("the table has one line a host and the sums below", () => {
  const records = [decided(1, "2001:db8::1", { protocol: "tls-sni", port: 443 }), traffic(2, "2001:db8::1", { bytesDown: 1_234_567 }), decided(3, "b.example", { action: "deny" }), decided(4, "b.example", { action: "report", count: 2 })];
  expect(renderStatistics(collectStatistics(records))).toEqual([
    "host               protocols  allowed       refused    up    down  flows  first                     last",
    "[2001:db8::1]:443  tls-sni          1             0  10 B  1.2 MB      1  2026-11-21T04:00:01.000Z  2026-11-21T04:00:02.000Z",
    "b.example          dns              0  1+2 reported   0 B     0 B      0  2026-11-21T04:00:03.000Z  2026-11-21T04:00:04.000Z",
    "total                               1  1+2 reported  10 B  1.2 MB      1  2026-11-21T04:00:01.000Z  2026-11-21T04:00:04.000Z",
  ]);
});

test.each([
  [0, "0 B"],
  [999, "999 B"],
  [1000, "1.0 kB"],
  [999_949, "999.9 kB"],
  [999_950, "1.0 MB"],
  [64 * 1024 * 1024, "67.1 MB"],
  [Number.MAX_SAFE_INTEGER, "9.0 PB"],
])("%i bytes are shown as %s", (bytes, text) => {
  expect(renderBytes(bytes)).toBe(text);
});
