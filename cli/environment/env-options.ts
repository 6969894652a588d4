import type { Complaint } from "../../policy/errors.ts";
import { checkVariable, isReserved, type Variable } from "./variable.ts";

/** Parses the values of `-e`: `NAME=VALUE`, or `NAME` for the caller's own value. Later ones win. */
export function parseEnvOptions(options: readonly string[], hostEnv: NodeJS.ProcessEnv): { variables: Variable[]; complaints: Complaint[] } {
  const variables: Variable[] = [];
  const complaints: Complaint[] = [];
  for (const option of options) {
    const cut = option.indexOf("=");
    const name = cut === -1 ? option : option.slice(0, cut);
    const value = cut === -1 ? hostEnv[name] : option.slice(cut + 1);
    const complaint = checkVariable({ name, value: value ?? "" }) ?? checkOption(name, value);
    if (complaint === null && value !== undefined) variables.push({ name, value });
    else if (complaint !== null) complaints.push(complaint);
  }
  return { variables, complaints };
}

function checkOption(name: string, value: string | undefined): Complaint | null {
  if (isReserved(name)) {
    const fix = `set it before the command: ${name}=… agentbox`;
    return { what: `-e ${name} would reach the agent and change nothing else`, expected: "a variable of the agent", fix };
  }
  if (value !== undefined) return null;
  return { what: `-e ${name} takes the value from your environment, where it is not set`, expected: `-e ${name}=VALUE`, fix: "write the value, or export the variable first" };
}
