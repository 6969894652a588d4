import type { Complaint } from "../policy/errors.ts";
import { quote } from "../policy/parsed.ts";
import { boxVerbs, type Verb } from "./args-options.ts";
import { checkSwitch } from "./session/firewall-switch.ts";

/** The variables of the caller's environment that steer AgentBox itself. */
export type SteeringVariables = {
  /** AGENTBOX_FIREWALL. */
  firewall: string | undefined;
  /** AGENTBOX_LOG. */
  log: string | undefined;
};

/** Complains about variables that steer what `verb` does and hold a value without a meaning. */
export function checkEnvironment({ firewall, log }: SteeringVariables, verb: Verb): Complaint[] {
  const startsBox = boxVerbs.includes(verb);
  const found = [startsBox ? checkSwitch(firewall) : undefined, startsBox || verb === "rebuild" ? checkLog(log) : undefined];
  return found.filter((complaint) => complaint !== undefined);
}

/** A program that asked for another form would wait in vain for lines that it can read. */
function checkLog(variable: string | undefined): Complaint | undefined {
  if (variable === undefined || variable === "" || variable === "json") return undefined;
  return { what: `AGENTBOX_LOG is ${quote(variable)}`, expected: "json (the steps of a start as JSON lines)", fix: "set it to json, or unset the variable" };
}
