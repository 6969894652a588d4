/** How closely a command line is looked at: only URLs among its arguments, or whatever a known tool obviously needs. */
export const PREFLIGHT_MODES = ["heuristic", "strict"] as const;

export type PreflightMode = (typeof PREFLIGHT_MODES)[number];

/** Where nobody chose one: fewer false alarms, and the walls judge all the same. */
export const DEFAULT_PREFLIGHT_MODE: PreflightMode = "strict";
