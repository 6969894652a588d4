/** One mount of a box, as data; `cli/engine/` turns it into engine options. Paths are absolute. */
export type Mount =
  | { kind: "bind"; source: string; target: string; readOnly: boolean }
  | { kind: "volume"; name: string; target: string }
  | { kind: "tmpfs"; target: string; options: readonly string[] };
