import { rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { ConfigError } from "../../policy/errors.ts";
import { writeWhole } from "../session/whole-file.ts";
import { readPlainFile } from "../workspace/plain-file.ts";

const word = z.strictObject({ text: z.string(), until: z.int().optional() });

/** What `policy allow` and `policy deny` changed for one session; `until` is Unix time in ms. */
const overlaySchema = z.strictObject({ allow: z.array(word), deny: z.array(word) });

export type Overlay = z.infer<typeof overlaySchema>;
export type OverlayWord = z.infer<typeof word>;

const FILE = "overlay.json";
const MAX_BYTES = 16 * 1024 * 1024;

/** Reads what was changed for a session; nothing for a session that nobody changed. `directory` is the session's. */
export function readOverlay(directory: string): Overlay {
  const file = join(directory, FILE);
  const found = readPlainFile(file, MAX_BYTES);
  if ("flaw" in found) {
    if (found.flaw === "missing") return { allow: [], deny: [] };
    throw refuse(file, `the file ${found.detail}`);
  }
  const answer = overlaySchema.safeParse(parseJson(found.content.toString("utf8")));
  if (!answer.success) throw refuse(file, "the file is not what agentbox wrote there");
  return answer.data;
}

/** Writes what was changed for a session. To be called under the policy lock. */
export async function writeOverlay(directory: string, overlay: Overlay): Promise<void> {
  const file = join(directory, FILE);
  if (overlay.allow.length + overlay.deny.length === 0) await rm(file, { force: true });
  else await writeWhole(file, JSON.stringify(overlay), 0o600);
}

/**
 * Adds words to one side of an overlay and takes them from the other, since the last word of the owner
 * counts; one that holds for a moment takes nothing away, as its opposite is to hold afterwards. Words whose
 * time has passed are dropped; of a word said twice the longer time holds.
 */
export function changeOverlay(overlay: Overlay, { side, words, now }: { side: keyof Overlay; words: readonly OverlayWord[]; now: number }): Overlay {
  const said = new Set(words.map(({ text }) => text));
  const lasting = new Set(words.filter(({ until }) => until === undefined).map(({ text }) => text));
  const alive = (list: readonly OverlayWord[]): OverlayWord[] => list.filter(({ until }) => until === undefined || until > now);
  const other = side === "allow" ? "deny" : "allow";
  const earlier = alive(overlay[side]);
  const longest = words.map((one) => {
    const before = earlier.find(({ text }) => text === one.text);
    return before !== undefined && (before.until === undefined || (one.until !== undefined && before.until > one.until)) ? before : one;
  });
  const changed = { [side]: [...earlier.filter(({ text }) => !said.has(text)), ...longest], [other]: alive(overlay[other]).filter(({ text }) => !lasting.has(text)) };
  return overlaySchema.parse(changed);
}

function refuse(file: string, what: string): ConfigError {
  return new ConfigError({ what, expected: "the changes of a session", fix: "remove it; the box goes on with what it has", place: { file } });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
