import type { Asked } from "../access/judgement.ts";
import type { RequestHead, TargetForm } from "./request-head.ts";

/** What the head of a plain request came to: it holds for the next one that names the same, but for the judgement. */
export class LastRequest {
  readonly asked: Asked;
  /** As it stands in Host. */
  readonly authority: string;
  /** Of connections to its server. */
  readonly key: string;
  private readonly form: TargetForm;
  /** The bytes from the method to where the path begins, and those of Host. */
  private readonly start: Buffer;
  private readonly host: Buffer;

  constructor(head: RequestHead, bytes: Buffer, from: number, { asked, authority, key }: Pick<LastRequest, "asked" | "authority" | "key">) {
    this.asked = { ...asked, memo: { key: undefined, traffic: undefined } };
    this.authority = authority;
    this.key = key;
    this.form = head.form;
    this.start = Buffer.from(bytes.subarray(from + head.methodStart, from + head.pathStart));
    this.host = Buffer.from(bytes.subarray(from + head.host.start, from + head.host.end));
  }

  /** Whether a request has the same method, target and Host, byte for byte, and asks for nothing special. */
  isSame(head: RequestHead, bytes: Buffer, from: number): boolean {
    if (head.form !== this.form || head.isUpgrade || head.namesSocket || !head.hasHost) return false;
    return holds(bytes, from + head.methodStart, from + head.pathStart, this.start) && holds(bytes, from + head.host.start, from + head.host.end, this.host);
  }
}

function holds(bytes: Buffer, start: number, end: number, expected: Buffer): boolean {
  if (end - start !== expected.length) return false;
  for (let at = 0; at < expected.length; at += 1) if (bytes[start + at] !== expected[at]) return false;
  return true;
}
