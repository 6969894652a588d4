const EMPTY_SETTINGS = [0, 0, 0, 4, 0, 0, 0, 0, 0];
/** Length 8, type 7, stream 0; then the last stream, 0, and the error HTTP_1_1_REQUIRED. */
const GOAWAY = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0d];

/** Tells a client of HTTP/2 to speak HTTP/1.1 (RFC 9113 sections 6.8 and 7). */
export const HTTP_1_1_REQUIRED: Buffer = Buffer.from([...EMPTY_SETTINGS, ...GOAWAY]);
