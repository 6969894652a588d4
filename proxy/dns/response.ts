import { CLASS_IN, encodeName, HEADER_BYTES, readName, TYPE, WireError } from "./wire.ts";

/** One record of an answer, its data without compression. `target` is where a CNAME leads. */
export type WireRecord = { name: string; type: number; ttl: number; data: Buffer; target: string | undefined };

/** What an upstream resolver said. `negativeTtl` comes from the SOA record (RFC 2308); undefined where there is none. */
export type Response = { rcode: number; records: readonly WireRecord[]; negativeTtl: number | undefined };

/** Nothing is kept for longer, whatever an upstream says. */
const MAX_TTL_S = 86_400;
const MAX_NEGATIVE_TTL_S = 300;
const MAX_RECORDS = 4096;

/**
 * Reads an answer whose header and question were already found to belong to the question asked: the answer
 * section, and the SOA of the authority section. The additional section is not even looked at. Throws
 * WireError for whatever is malformed, and for a record whose data does not fit its type.
 */
export function readResponse(message: Buffer, questionEnd: number): Response {
  if (message.length < HEADER_BYTES) throw new WireError("a message that ends too early");
  const [answers, authorities] = [message.readUInt16BE(6), message.readUInt16BE(8)];
  if (answers + authorities > MAX_RECORDS) throw new WireError(`${answers + authorities} records`);
  const records: WireRecord[] = [];
  let negativeTtl: number | undefined;
  let at = questionEnd;
  for (let index = 0; index < answers + authorities; index += 1) {
    const { record, end } = readRecord(message, at);
    at = end;
    if (record === undefined) continue;
    if (index < answers) records.push(record);
    // The last of its fields is the time that the absence of a name may be believed.
    else if (record.type === TYPE.SOA) negativeTtl = Math.min(record.ttl, record.data.readUInt32BE(record.data.length - 4), MAX_NEGATIVE_TTL_S);
  }
  return { rcode: message.readUInt8(3) & 0x0f, records, negativeTtl };
}

/** Reads one record; undefined for one of another class or of a type that is never passed on. */
function readRecord(message: Buffer, at: number): { record: WireRecord | undefined; end: number } {
  const { name, end: fixed } = readName(message, at);
  if (fixed + 10 > message.length) throw new WireError("a record that ends too early");
  const type = message.readUInt16BE(fixed);
  const start = fixed + 10;
  const end = start + message.readUInt16BE(fixed + 8);
  if (end > message.length) throw new WireError("a record beyond the end of the message");
  if (message.readUInt16BE(fixed + 2) !== CLASS_IN) return { record: undefined, end };
  const data = readData(message, { type, start, end });
  if (data === undefined) return { record: undefined, end };
  return { record: { name, type, ttl: readTtl(message, fixed + 4), ...data }, end };
}

/** RFC 2181: a TTL with its highest bit set means 0. */
function readTtl(message: Buffer, at: number): number {
  const ttl = message.readUInt32BE(at);
  return ttl > 0x7fff_ffff ? 0 : Math.min(ttl, MAX_TTL_S);
}

type Span = { type: number; start: number; end: number };
type Data = { data: Buffer; target: string | undefined };

/** The data of a record, names in it written out; undefined for types that are never passed on. */
function readData(message: Buffer, { type, start, end }: Span): Data | undefined {
  switch (type) {
    case TYPE.A:
    case TYPE.AAAA:
      if (end - start !== (type === TYPE.A ? 4 : 16)) throw new WireError("an address of the wrong length");
      return { data: Buffer.from(message.subarray(start, end)), target: undefined };
    case TYPE.TXT:
    case TYPE.CAA:
    case TYPE.SSHFP:
    case TYPE.TLSA:
      return { data: Buffer.from(message.subarray(start, end)), target: undefined };
    case TYPE.CNAME:
    case TYPE.NS:
    case TYPE.PTR:
      return expandNames(message, { start, end }, { before: 0, names: 1, after: 0 });
    case TYPE.MX:
      return expandNames(message, { start, end }, { before: 2, names: 1, after: 0 });
    case TYPE.SRV:
      return expandNames(message, { start, end }, { before: 6, names: 1, after: 0 });
    case TYPE.SOA:
      return expandNames(message, { start, end }, { before: 0, names: 2, after: 20 });
    default:
      return undefined;
  }
}

/** Copies data that is bytes, then names, then bytes; it must fill its place exactly. `target` is the last name. */
function expandNames(message: Buffer, { start, end }: Omit<Span, "type">, shape: { before: number; names: number; after: number }): Data {
  const parts = [message.subarray(start, start + shape.before)];
  let at = start + shape.before;
  let target: string | undefined;
  for (let index = 0; index < shape.names; index += 1) {
    const read = readName(message, at);
    at = read.end;
    target = read.name;
    parts.push(encodeName(read.name));
  }
  if (at + shape.after !== end) throw new WireError("data that does not fill its record");
  parts.push(message.subarray(at, end));
  return { data: Buffer.concat(parts), target };
}
