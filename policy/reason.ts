/** Why a question was answered as it was; the words that logs, pages and error headers use. */
export const REASONS = [
  "allowed",
  "denied",
  "not_allowed",
  "not_allowed_local",
  "method_not_allowed",
  "mitm_required",
  "host_mismatch",
  "proxy_disabled",
  "unix_socket_unsupported",
] as const;

export type Reason = (typeof REASONS)[number];
