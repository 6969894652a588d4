import { isHiddenName } from "./hidden-name.ts";
import type { Located } from "./located.ts";
import type { JudgedAction, JudgedPath } from "./policy-invariants.ts";
import type { FileContent, Intent } from "./request.ts";

/** What is done to what was located, in the words of the rules. */
export function describeAction(intent: Intent, located: Located, { destination, size }: { destination?: Located | undefined; size?: number | undefined } = {}): JudgedAction {
  const writes = intent === "write" || intent === "create";
  return {
    intent,
    target: describePath(located),
    destination: destination === undefined ? undefined : describePath(destination),
    size: writes ? size : located.size,
    directory: located.kind === "directory",
    executable: writes && ((located.stat?.mode ?? 0) & 0o111) !== 0,
  };
}

/** The listing of a directory below one that was located to be listed. */
export function describeBelow(located: Located, path: string): JudgedAction {
  const { root } = located.grant;
  const relative = path.slice(root.length + 1);
  const target = { root, relative, absolute: path, exists: true, hidden: relative.split("/").some(isHiddenName), folding: located.folds };
  return { intent: "list", target, destination: undefined, size: 0, directory: true, executable: false };
}

/** Bytes of new contents; a stream's are what was announced, and unknown where nothing was. */
export function sizeOf(content: FileContent, sizeHint: number | undefined): number | undefined {
  if (typeof content === "string") return Buffer.byteLength(content);
  return content instanceof Uint8Array ? content.length : sizeHint;
}

function describePath({ grant: { root }, relative, path, kind, folds }: Located): JudgedPath {
  return { root, relative, absolute: path, exists: kind !== "missing", hidden: relative.split("/").some(isHiddenName), folding: folds };
}
