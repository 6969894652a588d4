import { UsageError } from "../../policy/errors.ts";
import type { PolicyCommand } from "../args-policy.ts";
import type { Edge } from "../edge.ts";

/** Performs one command about the policy and returns its exit code. */
export async function answerPolicy(edge: Edge, command: PolicyCommand): Promise<number> {
  void edge;
  throw new UsageError({ what: `${command.verb} is not there yet` });
}
