import { MALFORMED, type MessageHead } from "../../../../proxy/http/message-head.ts";
import { RequestHead } from "../../../../proxy/http/request-head.ts";
import { ResponseHead } from "../../../../proxy/http/response-head.ts";

/** What a head turned out to be. */
export type ReadHead<T extends MessageHead> = { length: number; complaint: string; head: T };

/** Parses a head that comes in pieces: a new buffer and place for each, as after a copy. */
function readHead<T extends MessageHead>(head: T, text: string, ends: readonly number[]): ReadHead<T> {
  const bytes = Buffer.from(text, "latin1");
  let length = 0;
  for (const [index, end] of [...ends, bytes.length].entries()) {
    const before = Buffer.alloc(index % 3);
    length = head.parse(Buffer.concat([before, bytes.subarray(0, end)]), before.length, before.length + end);
    if (length !== 0) break;
  }
  return { length, complaint: length === MALFORMED ? head.complaint : "", head };
}

export function readRequest(text: string, ends: readonly number[] = []): ReadHead<RequestHead> {
  return readHead(new RequestHead(), text, ends);
}

export function readResponse(text: string, ends: readonly number[] = []): ReadHead<ResponseHead> {
  return readHead(new ResponseHead(), text, ends);
}

/** Every place between two bytes; of a long text every thousandth. */
export function everyByte(text: string): readonly number[] {
  const step = text.length > 2000 ? 997 : 1;
  return Array.from({ length: Math.floor((text.length - 1) / step) }, (_, index) => (index + 1) * step);
}

/** All that later code asks of a head. */
export function describeHead({ length, complaint, head }: ReadHead<MessageHead>): unknown {
  if (complaint !== "" || length === 0) return { length, complaint };
  const { minor, contentLength, chunked, wantsClose, isUpgrade, cuts } = head;
  const own =
    head instanceof RequestHead
      ? { form: head.form, method: [head.methodStart, head.methodEnd], target: [head.targetStart, head.targetEnd], path: head.pathStart, host: head.hasHost ? [head.host.start, head.host.hostEnd, head.host.end, head.host.port] : undefined, expects: head.expectsContinue, socket: head.namesSocket }
      : {};
  return { length, minor, contentLength, chunked, wantsClose, isUpgrade, cuts: [...cuts], ...own };
}
