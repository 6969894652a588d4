import { expect, test, vi } from "vitest";
import { type AskSystem, lookupBySystem } from "../../../proxy/standalone/system-lookup.ts";

const ok = (...addresses: string[]): AskSystem => (_name, take) => setImmediate(() => take(null, addresses));

function failing(code: string): AskSystem {
  return (_name, take) => setImmediate(() => take(Object.assign(new Error(code), { code }), []));
}

test("addresses come in the order of the system, without those that no name should lead to", async () => {
  expect(await lookupBySystem(ok("2001:db8::1", "192.0.2.1", "fe80::1%eth0", "192.0.2.2"))("a.example")).toMatchObject({ ok: true, addresses: [{ text: "2001:db8::1" }, { text: "192.0.2.1" }, { text: "192.0.2.2" }] });
});

test.each([
  { code: "ENOTFOUND", why: "the name does not exist" },
  { code: "EAI_AGAIN", why: "the system's resolver gives no answer now" },
  { code: "EMFILE", why: "the name cannot be looked up (EMFILE)" },
])("$code is told as: $why", async ({ code, why }) => {
  expect(await lookupBySystem(failing(code))("a.example")).toEqual({ ok: false, why });
});

test("questions for one name share one way, and its answer is at hand afterwards, until it is old", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    const ask = vi.fn<AskSystem>(ok("192.0.2.1"));
    const lookup = lookupBySystem(ask);
    await Promise.all(["a.example", "a.example", "b.example"].map(async (name) => await lookup(name)));
    expect(ask).toHaveBeenCalledTimes(2);
    expect(lookup("a.example")).toMatchObject({ ok: true });
    vi.setSystemTime(Date.now() + 30_001);
    expect(await lookup("a.example")).toMatchObject({ ok: true });
    expect(ask).toHaveBeenCalledTimes(3);
  } finally {
    vi.useRealTimers();
  }
});

test("a failure is kept for a moment only", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    const ask = vi.fn<AskSystem>(failing("ENOTFOUND"));
    const lookup = lookupBySystem(ask);
    await lookup("a.example");
    expect(lookup("a.example")).toMatchObject({ ok: false });
    vi.setSystemTime(Date.now() + 2001);
    await lookup("a.example");
    expect(ask).toHaveBeenCalledTimes(2);
  } finally {
    vi.useRealTimers();
  }
});

test("a flood of names is bounded, and over when the system has answered", async () => {
  const waiting: (() => void)[] = [];
  const lookup = lookupBySystem((_name, take) => void waiting.push(() => take(null, ["192.0.2.1"])));
  const asked = Array.from({ length: 256 }, async (_, index) => await lookup(`n${index}.example`));
  expect(lookup("more.example")).toEqual({ ok: false, why: "too many names are looked up at once" });
  for (const answer of waiting) answer();
  await Promise.all(asked);
  expect(lookup("more.example")).toBeInstanceOf(Promise);
});

test("a resolver that never answers is given up", async () => {
  vi.useFakeTimers();
  try {
    const found = lookupBySystem(() => undefined)("a.example");
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await found).toEqual({ ok: false, why: "the system's resolver does not answer" });
  } finally {
    vi.useRealTimers();
  }
});

test("the system itself is asked in the end", async () => {
  expect(await lookupBySystem()("localhost")).toMatchObject({ ok: true });
});
