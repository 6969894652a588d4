/** What a box asks for to prove that its own walls stand. `spelling` is how it asks, which tells its questions from an agent's. */
type NameProbe = { name: string; spelling: string };

/**
 * Names that exist everywhere (RFC 2606), so that only the box's resolver can say that they do not. Upper and
 * lower case mean the same to DNS. An agent that spells them so hides only these refusals from a summary.
 */
export const NAME_PROBES: readonly NameProbe[] = [
  { name: "example.com", spelling: "eXaMpLe.CoM" },
  { name: "example.net", spelling: "eXaMpLe.NeT" },
  { name: "example.org", spelling: "eXaMpLe.OrG" },
];

/** Documentation addresses (RFC 5737, RFC 3849): nobody's, so nobody is bothered should the wall be down. */
export const ADDRESS_PROBES = ["198.51.100.1", "2001:db8::1"] as const;

/** The `detail` of a decision about a name probe. */
export const PROBE_DETAIL = "asked by the box itself, to prove its walls";
