import { parseAddress, type Address } from "../../policy/address.ts";
import type { Response, WireRecord } from "./response.ts";
import { encodeName, RCODE, TYPE } from "./wire.ts";
import { bareReply, type ReplyBody } from "./reply.ts";

/** The part of an answer that belongs to the question: the aliases in their order, then the records at their end. */
export type AnswerChain = {
  rcode: number;
  aliases: readonly WireRecord[];
  records: readonly WireRecord[];
  /** How long the answer may be kept, in seconds; 0 for not at all. */
  ttl: number;
};

const MAX_ALIASES = 16;
/** More addresses than any service has; a name cannot fill the kernel's sets by one answer. */
const MAX_RECORDS = 128;

/**
 * Follows the aliases from the name that was asked for and takes the records at their end. Everything else
 * in the answer is left behind: a resolver has no business telling of names that nobody asked for.
 */
export function followChain({ rcode, records, negativeTtl }: Response, { name, type }: { name: string; type: number }): AnswerChain {
  const aliases: WireRecord[] = [];
  let owner = name;
  for (;;) {
    const alias = type === TYPE.CNAME ? undefined : records.find((record) => record.type === TYPE.CNAME && record.name === owner);
    if (alias?.target === undefined) break;
    aliases.push(alias);
    owner = alias.target;
    if (aliases.length > MAX_ALIASES) return { rcode: RCODE.serverFailure, aliases: [], records: [], ttl: 0 };
  }
  const found = records.filter((record) => record.type === type && record.name === owner).slice(0, MAX_RECORDS);
  const chain = [...aliases, ...found];
  if (found.length > 0) return { rcode: RCODE.noError, aliases, records: found, ttl: Math.min(...chain.map(({ ttl }) => ttl)) };
  const negative = Math.min(negativeTtl ?? 0, ...aliases.map(({ ttl }) => ttl));
  return { rcode: rcode === RCODE.nameError ? RCODE.nameError : RCODE.noError, aliases, records: [], ttl: negative };
}

/** The address that an A or AAAA record holds. */
export function readAddress({ type, data }: WireRecord): Address {
  const text = type === TYPE.A ? data.join(".") : (data.toString("hex").match(/.{4}/g) ?? []).join(":");
  const address = parseAddress(text);
  if (!address.ok) throw new Error(`${text} came from the bytes of a record`);
  return address.value;
}

/** A record that leads a name to an address. */
export function addressRecord(name: string, { family, value, text }: Address, ttl: number): WireRecord {
  const bytes = family === 4 ? text.split(".").map(Number) : Buffer.from(value.toString(16).padStart(32, "0"), "hex");
  return { name, type: family === 4 ? TYPE.A : TYPE.AAAA, ttl, data: Buffer.from(bytes), target: undefined };
}

const POINTER_TO_QUESTION = Buffer.from([0xc0, 12]);

/** Writes aliases and records behind a question for `name`. */
export function encodeChain({ rcode, aliases, records }: Omit<AnswerChain, "ttl">, name: string): ReplyBody {
  const chain = [...aliases, ...records];
  if (chain.length === 0) return bareReply(rcode);
  const parts: Buffer[] = [];
  for (const record of chain) {
    const owner = record.name === name ? POINTER_TO_QUESTION : encodeName(record.name);
    const fixed = Buffer.alloc(10);
    fixed.writeUInt16BE(record.type, 0);
    fixed.writeUInt16BE(1, 2);
    fixed.writeUInt32BE(record.ttl, 4);
    fixed.writeUInt16BE(record.data.length, 8);
    parts.push(owner, fixed, record.data);
  }
  return { rcode, answers: chain.length, records: Buffer.concat(parts).toString("latin1") };
}
