import { randomBytes } from "node:crypto";

/** A random serial number of 16 bytes, in hexadecimal, that reads as positive (RFC 5280, 4.1.2.2). */
export function makeSerial(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString("hex");
}
