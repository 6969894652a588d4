import type { Steps } from "./rule-slot.ts";
import type { GlobToken } from "./sandbox-pattern.ts";

type Node<T> = {
  chars: Map<string, Node<T>> | undefined;
  /** After `?`. */
  any: Node<T> | undefined;
  /** After `*`. */
  star: Node<T> | undefined;
  /** Whether this node stands after `*`, which takes any number of characters. */
  loops: boolean;
  value: T | undefined;
};

/**
 * Many patterns of one name as one tree, which branches by character. A search walks all of them at once and holds
 * only the places that fit so far: patterns that begin otherwise cost nothing, however many there are, and no
 * pattern makes it go back, so no name can be chosen that takes exponential time.
 */
export class GlobTree<T> {
  private readonly root = makeNode<T>(false);

  /** Returns what stands at the end of a pattern; `make` makes it where the pattern is new. */
  at(tokens: readonly GlobToken[], make: () => T): T {
    let node = this.root;
    for (const token of tokens) {
      if (token === "any") node = node.any ??= makeNode(false);
      else if (token === "star") node = node.star ??= makeNode(true);
      else for (const char of token.text) node = childFor(node, char);
    }
    return (node.value ??= make());
  }

  /** Shows what stands at the end of each pattern that the whole name matches. */
  match(name: string, see: (value: T) => void, steps?: Steps): void {
    let active = new Set<Node<T>>();
    enter(active, this.root);
    for (const char of name) {
      const next = new Set<Node<T>>();
      for (const node of active) {
        if (steps !== undefined) steps.count += 1;
        if (node.loops) enter(next, node);
        if (node.any !== undefined) enter(next, node.any);
        const child = node.chars?.get(char);
        if (child !== undefined) enter(next, child);
      }
      if (next.size === 0) return;
      active = next;
    }
    for (const { value } of active) if (value !== undefined) see(value);
  }
}

/** `*` also takes no character at all. */
function enter<T>(active: Set<Node<T>>, node: Node<T>): void {
  active.add(node);
  if (node.star !== undefined) active.add(node.star);
}

function childFor<T>(node: Node<T>, char: string): Node<T> {
  node.chars ??= new Map();
  const child = node.chars.get(char) ?? makeNode<T>(false);
  node.chars.set(char, child);
  return child;
}

function makeNode<T>(loops: boolean): Node<T> {
  return { chars: undefined, any: undefined, star: undefined, loops, value: undefined };
}
