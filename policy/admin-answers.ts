import { z } from "zod";
import { decisionRecordSchema } from "./decision-record.ts";

/** What the admin API of the stand-alone proxy answers, in JSON; `/health` alone is text. */
export const configAnswerSchema = z.strictObject({
  version: z.literal(1),
  /** Path of the file that it was read of, and of the directory of the log. */
  file: z.string(),
  log: z.string(),
  enabled: z.boolean(),
  approve: z.boolean(),
  mode: z.enum(["limited", "full"]),
  /** Whether the mode was set by the API and not by the file. */
  mode_overridden: z.boolean(),
  proxy_url: z.string(),
  socks_url: z.string().nullable(),
  admin_url: z.string(),
  /** Without user and password. */
  upstream_proxy: z.string().nullable(),
  policy: z.strictObject({ allowed_domains: z.array(z.string()), denied_domains: z.array(z.string()), allow_unix_sockets: z.array(z.string()), allow_local_binding: z.boolean(), allow_private: z.array(z.string()) }),
  mitm: z.strictObject({ enabled: z.boolean(), inspect: z.boolean(), max_body_bytes: z.int(), ca_cert_path: z.string(), passthrough: z.array(z.string()) }),
  /** Keys whose new value counts from the next start on. */
  restart_needed: z.array(z.string()),
});

const pattern = z.strictObject({
  /** In canonical form, with its ports. */
  text: z.string(),
  source: z.string(),
  /** RFC 3339; null for good. */
  until: z.string().nullable(),
});

export const patternsAnswerSchema = z.strictObject({ version: z.literal(1), allowed: z.array(pattern), denied: z.array(pattern) });

/** `last` is the number of the newest line, to ask for what comes after it. */
export const blockedAnswerSchema = z.strictObject({ version: z.literal(1), last: z.int().nullable(), blocked: z.array(decisionRecordSchema) });

export const modeSchema = z.strictObject({ mode: z.enum(["limited", "full"]) });

/** What a reload opened and closed, which other values it changed, how many connections it cut, and the keys that need a restart. */
export const reloadAnswerSchema = z.strictObject({ added: z.array(z.string()), removed: z.array(z.string()), changed: z.array(z.string()), cut: z.int(), restart_needed: z.array(z.string()) });

export const errorAnswerSchema = z.strictObject({ error: z.string() });

export type ConfigAnswer = z.infer<typeof configAnswerSchema>;
export type PatternsAnswer = z.infer<typeof patternsAnswerSchema>;
export type ReloadAnswer = z.infer<typeof reloadAnswerSchema>;
