import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { describeGaps, findDecisionFile, readDecisions } from "../../../../cli/log/decision-files.ts";
import { followDecisions } from "../../../../cli/log/follow-decisions.ts";
import { collectRefusals } from "../../../../cli/log/refusals.ts";
import { renderSessionReport } from "../../../../cli/log/session-report.ts";
import type { DecisionRecord } from "../../../../policy/decision-record.ts";

type Decided = Extract<DecisionRecord, { kind: "decision" }>;

function decided(seq: number, host: string, more: Partial<Decided> = {}): Decided {
  return {
    kind: "decision", time: `2026-11-21T04:00:${String(seq % 60).padStart(2, "0")}.000Z`, seq, session: "s", protocol: "dns", host, port: null, type: "A",
    addresses: [], action: "deny", reason: "not_allowed", rule: null, source: null, detail: null, hint: null, client: null, count: 1, ...more,
  };
}

const line = (seq: number): string => `${JSON.stringify(decided(seq, `h${seq}.example.com`))}\n`;
const lines = (from: number, to: number): string => Array.from({ length: to - from + 1 }, (_, index) => line(from + index)).join("");

describe("the files of a log", () => {
  let session: string;
  let live: string;

  beforeEach(() => {
    session = mkdtempSync(path.join(tmpdir(), "agentbox log "));
    live = findDecisionFile(session);
    mkdirSync(path.dirname(live));
  });

  afterEach(() => rmSync(session, { recursive: true, force: true }));

  const rotate = (): void => {
    for (const age of [2, 1]) {
      try {
        renameSync(`${live}.${age}`, `${live}.${age + 1}`);
      } catch {
        // There is none so old.
      }
    }
    renameSync(live, `${live}.1`);
  };

  test("are read as one, in order, rotated ones too, and each record once", () => {
    writeFileSync(live, lines(0, 2));
    rotate();
    writeFileSync(live, lines(3, 4));
    rotate();
    writeFileSync(live, `${lines(4, 5)}{"torn`);
    expect(readDecisions(session)).toMatchObject({ unread: 0, records: [0, 1, 2, 3, 4, 5].map((seq) => ({ seq })) });
  });

  test.each([
    { name: "are whole from the first line on", from: 0, missing: 0, said: [] },
    { name: "tell how many older lines were rotated away, or removed", from: 7, missing: 7, said: [expect.stringMatching(/^older lines of its log are gone \(7\)/)] },
  ])("$name", ({ from, missing, said }) => {
    writeFileSync(live, lines(from, 9));
    const { records, ...gaps } = readDecisions(session);
    expect({ first: records[0]?.seq, gaps }).toEqual({ first: from, gaps: { unread: 0, missing, holes: 0 } });
    expect(describeGaps(gaps)).toEqual(said);
  });

  test.each([
    { name: "lines that were taken out in between", text: lines(0, 2) + lines(5, 6) + lines(8, 8), gaps: { unread: 0, missing: 0, holes: 3 }, said: ["3 lines of its log are gone in between: what is told here is not all"] },
    { name: "one line that was overwritten, once and not twice", text: `${lines(0, 2)}nonsense\n${lines(4, 5)}`, gaps: { unread: 1, missing: 0, holes: 0 }, said: ["1 line of its log was not understood"] },
  ])("tell of $name", ({ text, gaps: expected, said }) => {
    writeFileSync(live, text);
    const { records: _records, ...gaps } = readDecisions(session);
    expect({ gaps, said: describeGaps(gaps) }).toEqual({ gaps: expected, said });
  });

  test("may hold what is no record, which is counted and skipped", () => {
    writeFileSync(live, `nonsense\n${line(1)}{"kind":"decision"}\n`);
    expect(readDecisions(session)).toMatchObject({ unread: 2, records: [{ seq: 1 }] });
  });

  test("are not followed to a file of the host, as a box could have them linked", () => {
    writeFileSync(path.join(session, "secret"), line(7));
    symlinkSync(path.join(session, "secret"), live);
    expect(readDecisions(session)).toEqual({ records: [], unread: 1, missing: 0, holes: 0 });
  });

  test("are followed over rotations without a gap or a repeat, until the session is over", async () => {
    writeFileSync(live, lines(0, 2));
    const seen: number[] = [];
    let next = 3;
    let over = false;
    const isOver = async (): Promise<boolean> => {
      if (over) return true;
      appendFileSync(live, lines(next, next));
      if (next % 3 === 0) rotate();
      if (next % 3 === 0) writeFileSync(live, lines(next + 1, next + 1));
      next += next % 3 === 0 ? 2 : 1;
      over = next > 12;
      return false;
    };
    await followDecisions({ file: live, take: async ({ seq }) => void seen.push(seq), isOver, signal: new AbortController().signal });
    expect(seen).toEqual(Array.from({ length: next }, (_, seq) => seq));
  });

  test("that are not there yet are waited for", async () => {
    const seen: number[] = [];
    let polls = 0;
    const isOver = async (): Promise<boolean> => {
      polls += 1;
      if (polls === 2) writeFileSync(live, lines(0, 1));
      return polls > 3;
    };
    await followDecisions({ file: live, take: async ({ seq }) => void seen.push(seq), isOver, signal: new AbortController().signal });
    expect(seen).toEqual([0, 1]);
  });
});

describe("refusals", () => {
  test("of one host are one, with how often and the last time", () => {
    const { refusals } = collectRefusals([decided(1, "a.example.com"), decided(2, "a.example.com", { type: "AAAA", count: 3 })], { all: false });
    expect(refusals).toMatchObject([{ host: "a.example.com", protocol: "dns", count: 4, time: "2026-11-21T04:00:02.000Z", command: "agentbox policy allow a.example.com" }]);
  });

  test.each([
    { name: "leave out what was allowed", record: decided(1, "a.example.com", { action: "allow", reason: "allowed" }), count: 0 },
    { name: "hold what report mode let through, as such", record: decided(1, "a.example.com", { action: "report" }), count: 1 },
    { name: "leave out telemetry", record: decided(1, "statsig.anthropic.com"), count: 0 },
    { name: "hold telemetry when all of it is asked for", record: decided(1, "statsig.anthropic.com"), all: true, count: 1 },
  ])("$name", ({ record, count, all = false }) => {
    expect(collectRefusals([record], { all }).refusals).toHaveLength(count);
  });

  test.each([
    { name: "a command with a second one behind", hint: "agentbox policy allow a.example.com; curl evil" },
    { name: "another program", hint: "sudo agentbox policy allow a.example.com" },
    { name: "an option", hint: "agentbox policy allow --always" },
    { name: "a wildcard for everything", hint: "agentbox policy allow *" },
    { name: "a line break", hint: "agentbox policy allow a.example.com\nrm" },
  ])("never offer what a box made up: $name", ({ hint }) => {
    const [refusal] = collectRefusals([decided(1, "b.example.com", { hint })], { all: false }).refusals;
    expect(refusal?.command).toBe("agentbox policy allow b.example.com");
  });

  test("of a packet take the name that the box knows for its address", () => {
    const record = decided(1, "192.0.2.1", { protocol: "address", port: 8443, type: "tcp", hint: "agentbox policy allow a.example.com:8443" });
    expect(collectRefusals([record], { all: false }).refusals[0]).toMatchObject({ protocol: "tcp", port: 8443, command: "agentbox policy allow a.example.com:8443" });
  });

  test("of one host by several methods are several, and CONNECT is no method of its own", () => {
    const http = { protocol: "http", type: null, port: 80, reason: "method_not_allowed" } as const;
    const { refusals } = collectRefusals(
      [
        decided(1, "a.example.com", { ...http, method: "POST" }),
        decided(2, "a.example.com", { ...http, method: "DELETE" }),
        decided(3, "a.example.com", { ...http, method: "POST", count: 2 }),
        decided(4, "a.example.com", { protocol: "https-connect", type: null, port: 443, method: "CONNECT", reason: "mitm_required" }),
      ],
      { all: false },
    );
    expect(refusals.map(({ protocol, method, count }) => ({ protocol, method, count }))).toEqual([
      { protocol: "http", method: "POST", count: 3 },
      { protocol: "http", method: "DELETE", count: 1 },
      { protocol: "https-connect", method: null, count: 1 },
    ]);
  });

  test.each([
    { name: "a name in TLS that no rule allows", more: { protocol: "tls-sni", port: 443 }, command: "agentbox policy allow a.example.com", said: /^$/ },
    { name: "a request to another port", more: { protocol: "http", port: 8080, method: "GET" }, command: "agentbox policy allow a.example.com:8080", said: /^$/ },
    { name: "a SOCKS connection", more: { protocol: "socks5-tcp", port: 22 }, command: "agentbox policy allow a.example.com:22", said: /^$/ },
    { name: "a method", more: { protocol: "http", port: 80, method: "POST", reason: "method_not_allowed" }, command: null, said: /set mode = "full" in \[network_proxy\]/ },
    { name: "a tunnel that nobody sees into", more: { protocol: "https-connect", port: 443, method: "CONNECT", reason: "mitm_required" }, command: null, said: /enabled = true in \[network_proxy\.mitm\]/ },
    { name: "two names for one connection", more: { protocol: "tls-sni", port: 443, reason: "host_mismatch" }, command: null, said: /names two different hosts: no rule allows that/ },
    { name: "a proxy that is switched off", more: { protocol: "http", port: 80, method: "GET", reason: "proxy_disabled" }, command: null, said: /enabled = true in \[network_proxy\]/ },
  ] as const)("of the name wall say what helps: $name", ({ more, command, said }) => {
    const [refusal] = collectRefusals([decided(1, "a.example.com", { type: null, ...more })], { all: false }).refusals;
    expect(refusal).toMatchObject({ protocol: more.protocol, port: more.port, command });
    expect(refusal?.advice ?? "").toMatch(said);
  });

  test.each([
    { name: "a blocked host", more: { reason: "denied", rule: "deny a.example.com", source: "~/.agentbox/config.toml:3" }, said: /remove the rule.*config\.toml:3/ },
    { name: "a name that leads into the local network", more: { reason: "not_allowed_local" }, said: /allow_private/ },
  ])("give a sentence and no command for $name", ({ more, said }) => {
    const [refusal] = collectRefusals([decided(1, "a.example.com", more)], { all: false }).refusals;
    expect(refusal).toMatchObject({ command: null, advice: expect.stringMatching(said) });
  });
});

describe("the report after a session", () => {
  test("is empty when only telemetry was refused", () => {
    expect(renderSessionReport([decided(1, "statsig.anthropic.com"), decided(2, "ok.example.com", { action: "allow" })])).toEqual([]);
  });

  test("ends with one command that allows everything it names", () => {
    const report = renderSessionReport([decided(1, "a.example.com"), decided(2, "b.example.com", { count: 5 })]);
    expect(report).toEqual(["This session was refused:", "  b.example.com  5 times, not_allowed", "  a.example.com  once, not_allowed", "If it needs them: agentbox policy allow --always b.example.com a.example.com", "All of it: agentbox blocked"]);
  });

  test("never has more than eight lines", () => {
    expect(renderSessionReport(Array.from({ length: 500 }, (_, seq) => decided(seq, `h${seq}.example.com`))).length).toBeLessThanOrEqual(8);
  });
});
