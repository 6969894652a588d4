import type { Mount } from "../mount.ts";
import type { TmpfsMount } from "./security.ts";

/** Renders the value of `--mount`, a line of CSV, so that commas and quotes in a path stay what they are. */
export function renderMount(mount: Exclude<Mount, { kind: "tmpfs" }>, labels: readonly string[]): string {
  const fields =
    mount.kind === "bind"
      ? ["type=bind", `source=${mount.source}`, `target=${mount.target}`, ...(mount.readOnly ? ["readonly"] : [])]
      : ["type=volume", `source=${mount.name}`, `target=${mount.target}`, ...labels.map((label) => `volume-label=${label}`)];
  return fields.map(quoteField).join(",");
}

/** Renders the value of `--tmpfs`; unlike `--mount type=tmpfs` it takes every mount option. */
export function renderTmpfs({ target, options }: TmpfsMount): string {
  return options.length === 0 ? target : `${target}:${options.join(",")}`;
}

function quoteField(field: string): string {
  return /[",\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}
