import { parseAddress } from "../../policy/address.ts";
import type { BoxPolicy } from "../../policy/box-policy.ts";
import { decide } from "../../policy/decide.ts";
import { parseHostName } from "../../policy/host-name.ts";
import { openRanges } from "../../policy/open-ports.ts";
import { portsFor } from "./learned-table.ts";
import { type Target, targetOf } from "./cut-table.ts";

/** Names and what they lead to: of the hosts file, or pinned. */
export type KnownNames = ReadonlyMap<string, readonly string[]>;

/**
 * Everything that the literal sets hold: blocks that the policy opens by address, allowed names of the hosts
 * file, and private names as they were pinned. No two of one port overlap.
 */
export function collectLiterals(box: BoxPolicy, hosts: KnownNames, pins: KnownNames): Target[] {
  const ranges = openRanges(box.policy).map(({ range, port }): Target => ({ range, port }));
  const pinned = new Map([...pins].filter(([name]) => box.privateNames.includes(name)));
  const single = new Map<string, Target>();
  for (const known of [hosts, pinned]) {
    for (const target of [...known].flatMap(([name, addresses]) => openName(box, name, addresses))) single.set(`${target.range.text} ${target.port}`, target);
  }
  const outside = [...single.values()].filter(
    ({ range, port }) => decide(box.policy, { host: range.text, port }).action !== "allow",
  );
  return [...ranges, ...outside];
}

function openName(box: BoxPolicy, word: string, texts: readonly string[]): Target[] {
  const name = parseHostName(word);
  if (!name.ok) return [];
  return texts.flatMap((text) => {
    const address = parseAddress(text);
    if (!address.ok) return [];
    return portsFor(box, name.value, address.value).map((port) => targetOf(address.value.text, port));
  });
}
