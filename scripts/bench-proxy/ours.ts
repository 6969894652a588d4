import { mkdirSync } from "node:fs";
import { z } from "zod";
import { parseAddress } from "../../policy/address.ts";
import { buildPolicy } from "../../policy/policy.ts";
import { parseEntry } from "../../policy/entry.ts";
import type { EffectiveEntry } from "../../policy/effective-list.ts";
import { Access } from "../../proxy/access/access.ts";
import { Dialler } from "../../proxy/access/dial.ts";
import { Flows } from "../../proxy/access/flows.ts";
import { DecisionLog } from "../../proxy/log/decision-log.ts";
import { LogFile } from "../../proxy/log/log-file.ts";
import { LOOPBACK_RANGES } from "../../policy/loopback.ts";
import { startWeb } from "../../proxy/web.ts";
import { ORIGIN } from "./peers.ts";

// The proxy under test: the data plane as boxes and the stand-alone command run it, with so many rules and its log on.

const { http, socks, rules, log: dir } = z.strictObject({ http: z.int(), socks: z.int(), rules: z.int(), log: z.string() }).parse(JSON.parse(process.argv[2] ?? "{}"));

function listEntry(text: string): EffectiveEntry {
  const entry = parseEntry(text, "list");
  if (!entry.ok) throw new Error(entry.complaint.what);
  return { entry: entry.value, text, origins: [] };
}

const address = parseAddress(ORIGIN.address);
if (!address.ok) throw new Error("no address");
mkdirSync(dir, { recursive: true });
const log = new DecisionLog(new LogFile(dir));
log.start("bench");
const others = Array.from({ length: rules - 1 }, (_, index) => listEntry(`host${index}.example.org`));
const policy = buildPolicy({ list: [...others, listEntry(`http://${ORIGIN.host}`)], allowPrivate: LOOPBACK_RANGES });
const found = { ok: true as const, addresses: [address.value] };
const access = new Access({
  policy: { epoch: 1, enabled: true, policy, report: false, intercept: false, passesThrough: () => false, refuseEch: false, inspect: false, maxBodyBytes: 0, upstream: undefined },
  // Fresh as long as a box's resolver has it with a short time to live.
  lookup: (name) => (name === ORIGIN.host ? { ...found, freshUntil: Date.now() + 30_000 } : { ok: false, why: "no such name" }),
  log,
});
const lo = (port: number) => [{ host: "127.0.0.1", port }];
await startWeb({ access, flows: new Flows(access), dialler: new Dialler({ lookup: () => ({ ok: false, why: "no upstream" }) }), listeners: { http: lo(http), socks: lo(socks), plain: [], tls: [] } });
