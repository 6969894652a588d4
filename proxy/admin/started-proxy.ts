import { createHash } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { ProxySettings } from "../../policy/proxy-config.ts";
import { writeOwnFile } from "./own-file.ts";

const startedSchema = z.strictObject({ version: z.literal(1), pid: z.int(), admin: z.union([z.strictObject({ address: z.string(), port: z.int() }), z.strictObject({ path: z.string() })]) });

/**
 * Remembers where the admin API of the proxy is that runs by a configuration file: the file may have been changed
 * since, or be broken. Returns how to forget it.
 */
export function recordStarted(directory: string, configPath: string, admin: ProxySettings["admin"]): () => void {
  const file = findRecord(directory, configPath);
  writeOwnFile(file, `${JSON.stringify({ version: 1, pid: process.pid, admin })}\n`);
  return () => {
    if (readRecord(file)?.pid === process.pid) rmSync(file, { force: true });
  };
}

/** Where the admin API of the proxy is that was started by a configuration file; undefined where none was. It may have been killed since. */
export function findStarted(directory: string, configPath: string): ProxySettings["admin"] | undefined {
  return readRecord(findRecord(directory, configPath))?.admin;
}

function findRecord(directory: string, configPath: string): string {
  return join(directory, `started-${createHash("sha256").update(configPath).digest("hex").slice(0, 16)}.json`);
}

function readRecord(file: string): z.infer<typeof startedSchema> | undefined {
  try {
    return startedSchema.safeParse(JSON.parse(readFileSync(file, "utf8"))).data;
  } catch {
    // Not there, or none of ours: the configuration tells.
    return undefined;
  }
}
