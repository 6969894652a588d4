import type { Pattern } from "./pattern.ts";
import { addPorts, addToSlot, bestOf, NO_RULE, type Slot, type SlotRule, type Steps } from "./rule-slot.ts";

type Node = {
  children: Map<string, Node> | undefined;
  /** Rules for the name that ends here. */
  exact: Slot | undefined;
  /** Rules for the names with at least one more label. */
  below: Slot | undefined;
};

/**
 * Finds the first matching rule for a host name. The tree branches by label from the right
 * (`com` → `example` → `api`); every node keeps only the first rule of each port. So a search visits
 * one node a label, whatever the number of rules.
 */
export class LabelTree {
  private readonly root: Node = makeNode();

  /** Adds a rule; rules must be added in their order of evaluation. */
  add(pattern: Pattern, rule: SlotRule): void {
    if (pattern.kind === "all") {
      this.root.below = addToSlot(this.root.below, rule);
      return;
    }
    const node = this.nodeFor(pattern.kind === "exact" ? pattern.name : pattern.suffix);
    if (pattern.kind !== "below") node.exact = addToSlot(node.exact, rule);
    if (pattern.kind !== "exact") node.below = addToSlot(node.below, rule);
  }

  /**
   * Returns the index of the first rule that matches the canonical name on the port, or `NO_RULE`.
   * Without a port: the first rule that opens the name on some port or denies it on all.
   */
  find(name: string, port: number | undefined, steps?: Steps): number {
    let best = NO_RULE;
    this.visit(name, (slot) => (best = bestOf(slot, port, best)), steps);
    return best;
  }

  /** Adds every port that a matching rule names. */
  collectPorts(name: string, ports: Set<number>, steps?: Steps): void {
    this.visit(name, (slot) => addPorts(slot, ports), steps);
  }

  /** Shows the slots of every pattern that matches the name. */
  private visit(name: string, see: (slot: Slot | undefined) => void, steps: Steps | undefined): void {
    let node: Node | undefined = this.root;
    let end = name.length;
    while (node !== undefined && end > 0) {
      if (steps !== undefined) steps.count += 1;
      see(node.below);
      const dot = name.lastIndexOf(".", end - 1);
      node = node.children?.get(name.slice(dot + 1, end));
      end = dot;
    }
    // Left by the last label and not by a missing child: the whole name was consumed.
    if (node === undefined) return;
    if (steps !== undefined) steps.count += 1;
    see(node.exact);
  }

  private nodeFor(name: string): Node {
    return name.split(".").reduceRight((node, label) => {
      node.children ??= new Map();
      const child = node.children.get(label) ?? makeNode();
      node.children.set(label, child);
      return child;
    }, this.root);
  }
}

function makeNode(): Node {
  return { children: undefined, exact: undefined, below: undefined };
}
