/** A fatal alert `access_denied` (RFC 8446 section 6.2), so that clients tell that somebody refused, and not that the network broke. */
export const ACCESS_DENIED: Buffer = Buffer.from([21, 3, 3, 0, 2, 2, 49]);
