import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { configAnswerSchema, patternsAnswerSchema } from "../../../policy/admin-answers.ts";
import { ConfigError } from "../../../policy/errors.ts";
import { parseProxyConfig, readProxySettings } from "../../../policy/proxy-config.ts";
import { judgeHost } from "../../../proxy/access/judgement.ts";
import { DecisionLog, type WrittenLine } from "../../../proxy/log/decision-log.ts";
import { LogFile } from "../../../proxy/log/log-file.ts";
import { LineFeed } from "../../../proxy/standalone/line-feed.ts";
import type { LoadedConfig } from "../../../proxy/standalone/loaded-config.ts";
import { Standalone } from "../../../proxy/standalone/standalone.ts";

function load(text: string): LoadedConfig {
  const parsed = parseProxyConfig({ file: "proxy.toml", text: `[network_proxy]\nenabled = true\n${text}`, isPublicSuffix: () => false });
  return { parsed, path: "/home/u/proxy.toml", user: undefined, settings: readProxySettings(parsed), isPublicSuffix: () => false, watched: [] };
}

const LIST = (...hosts: string[]): string => `[network_proxy.policy]\nallowed_domains = ${JSON.stringify(hosts)}\n`;

let dir = "";
let log: DecisionLog;
let feed: LineFeed;
let lines: WrittenLine[] = [];

beforeEach(() => {
  dir = mkdtempSync(`${tmpdir()}/agentbox-standalone-`);
  feed = new LineFeed();
  lines = [];
  feed.listen((line) => lines.push(line));
  log = new DecisionLog(new LogFile(dir), { onLine: (line) => feed.take(line) });
  log.start("proxy");
});

afterEach(() => {
  vi.useRealTimers();
  log.close();
  rmSync(dir, { recursive: true });
});

function make(text: string, read: () => Promise<LoadedConfig> = () => Promise.resolve(load(text))): Standalone {
  return new Standalone({ loaded: load(text), read, log, logDir: dir, feed, lookup: () => ({ ok: false, why: "no names" }), approve: false });
}

function reasonOf({ access }: Standalone, host: string, method = "GET"): string {
  return judgeHost(access.policy, { protocol: "http", method, host, port: 443, client: null, use: { kind: "request", method } }).decision.reason;
}

const events = (): object[] => lines.flatMap(({ entry }) => (entry.kind === "event" ? [{ event: entry.event, detail: entry.detail, added: entry.added, removed: entry.removed }] : []));

describe("a word of the session", () => {
  test("with a time is over when the time is, and what is open by it is cut then", () => {
    vi.useFakeTimers();
    const standalone = make("");
    standalone.allow({ text: "a.example", until: Date.now() + 60_000 });
    const cut = vi.fn<() => void>();
    const asked = { protocol: "https-connect", method: "CONNECT", host: "a.example", port: 443, client: null, use: { kind: "tunnel", via: "connect", intercepted: false } } as const;
    standalone.flows.begin({ asked, admitted: { ok: true, host: { kind: "name", name: "a.example" }, name: "a.example", port: 443, addresses: [], opaque: false, epoch: 1 }, cut });
    vi.advanceTimersByTime(59_000);
    expect([reasonOf(standalone, "a.example"), cut.mock.calls.length]).toEqual(["allowed", 0]);
    vi.advanceTimersByTime(1100);
    expect([reasonOf(standalone, "a.example"), cut.mock.calls.length]).toEqual(["not_allowed", 1]);
    expect(events()).toEqual([
      { event: "policy-replaced", detail: "answered at the terminal", added: ["allow a.example"], removed: [] },
      { event: "policy-replaced", detail: "the time of an answer is over", added: [], removed: ["allow a.example"] },
    ]);
    standalone.stop();
  });

  test("outlives a reload, and said once more for good it has no end", async () => {
    vi.useFakeTimers();
    const standalone = make("");
    standalone.allow({ text: "a.example", until: Date.now() + 1000 });
    standalone.allow({ text: "a.example" });
    await standalone.reload("test");
    vi.advanceTimersByTime(5000);
    expect(reasonOf(standalone, "a.example")).toBe("allowed");
    standalone.stop();
  });
});

describe("reloads", () => {
  test("that fail leave everything as it was, the mode of the API too; the next good one takes all of it", async () => {
    const answers: (() => LoadedConfig)[] = [
      () => {
        throw new ConfigError({ what: "broken" });
      },
      () => load(`mode = "limited"\n${LIST("b.example")}`),
    ];
    const standalone = make(LIST("a.example"), () => Promise.resolve().then(() => answers.shift()?.() ?? load("")));
    standalone.setMode("limited");
    await expect(standalone.reload("test")).rejects.toThrow("broken");
    expect(standalone.troubles()).toEqual([expect.stringContaining("broken")]);
    expect([reasonOf(standalone, "a.example"), reasonOf(standalone, "a.example", "POST")]).toEqual(["allowed", "method_not_allowed"]);
    expect(await standalone.reload("test")).toEqual({ added: ["allow b.example"], removed: ["allow a.example"], changed: [], cut: 0, restart_needed: [] });
    expect(standalone.troubles()).toEqual([]);
    expect([reasonOf(standalone, "a.example"), reasonOf(standalone, "b.example")]).toEqual(["not_allowed", "allowed"]);
    expect(standalone.describeConfig()).toMatchObject({ mode: "limited", mode_overridden: false });
  });

  test("that find the same text are none where only changes count", async () => {
    const standalone = make(LIST("a.example"));
    standalone.setMode("limited");
    await standalone.reload("the file was changed", { onlyChanged: true });
    expect(standalone.describeConfig()).toMatchObject({ mode: "limited", mode_overridden: true });
    expect(events()).toHaveLength(1);
    await standalone.reload("asked for");
    expect(standalone.describeConfig()).toMatchObject({ mode: "full", mode_overridden: false });
  });

  test("come one after the other, and the last file is the one that stays", async () => {
    const gates: ((loaded: LoadedConfig) => void)[] = [];
    const standalone = make("", async () => await new Promise<LoadedConfig>((resolve) => gates.push(resolve)));
    const both = [standalone.reload("first"), standalone.reload("second")];
    await vi.waitFor(() => expect(gates).toHaveLength(1));
    gates[0]?.(load(LIST("first.example")));
    await vi.waitFor(() => expect(gates).toHaveLength(2));
    gates[1]?.(load(LIST("second.example")));
    await Promise.all(both);
    expect([reasonOf(standalone, "first.example"), reasonOf(standalone, "second.example")]).toEqual(["not_allowed", "allowed"]);
  });

  test("tell every value that they changed, but no password", async () => {
    const standalone = make('upstream_proxy = "http://me:old-secret@proxy.corp:80"\n', () => Promise.resolve(load('upstream_proxy = "http://me:new-secret@proxy.corp:80"\nmode = "limited"\n[network_proxy.policy]\nallow_local_binding = true\n')));
    const answer = await standalone.reload("test");
    expect(answer.changed).toEqual(["mode full → limited", "allow_local_binding false → true", "upstream_proxy changed"]);
    expect(JSON.stringify([answer, standalone.describeConfig(), lines])).not.toContain("secret");
    expect(standalone.describeConfig().upstream_proxy).toBe("http://proxy.corp:80");
    expect(standalone.access.policy.upstream).toMatchObject({ user: "me", password: "new-secret" });
  });

  test("turn interception neither on nor off", async () => {
    const standalone = make("", () => Promise.resolve(load('mode = "limited"\n[network_proxy.mitm]\nenabled = true\n')));
    expect((await standalone.reload("test")).restart_needed).toEqual(["mitm.enabled"]);
    expect(standalone.access.policy.intercept).toBe(false);
  });
});

test("what is answered has the form that it shall have", () => {
  const standalone = make(LIST("*.a.example", "[2001:db8::1]:80"));
  expect(configAnswerSchema.safeParse(standalone.describeConfig()).success).toBe(true);
  expect(patternsAnswerSchema.parse(standalone.describePatterns()).allowed.map(({ text }) => text)).toEqual(["**.a.example", "[2001:db8::1]:80"]);
});

test("the newest two hundred refusals are kept, and asking takes none away", () => {
  const standalone = make("");
  const refuse = (host: string): void => void standalone.access.refuse({ protocol: "http", method: "GET", port: 80, client: null }, { action: "deny", reason: "not_allowed", host, port: 80, rule: undefined, nearest: undefined, detail: undefined }, []);
  for (let count = 0; count < 250; count += 1) refuse(`h${count}.example`);
  const kept = standalone.recentRefusals(-1);
  expect([kept.length, kept[0]?.seq, kept.at(-1)?.seq]).toEqual([200, 50, 249]);
  expect(standalone.recentRefusals(-1)).toHaveLength(200);
  expect(standalone.recentRefusals(248).map(({ seq }) => seq)).toEqual([249]);
});
