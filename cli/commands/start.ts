import { type AgentProfile, DEFAULT_AGENT, findAgentProfile } from "../../policy/agent-profile.ts";
import type { Command } from "../args.ts";
import type { AgentWord } from "../args-values.ts";
import type { TypedRequest } from "../session/prepare.ts";

export type BoxCommand = Extract<Command, { verb: "start" | "login" | "shell" | "run" }>;

/** Login shell of a box: reads the profile, so that PATH and history are set up. */
const loginShell = ["/bin/bash", "-l"];

/** Works out what a command line wants to run in a box; `preferred` is the agent that starts when none is named. */
export function requestBox(command: BoxCommand, preferred: AgentWord | undefined): TypedRequest {
  const { options } = command;
  switch (command.verb) {
    case "start": {
      const agent = command.agent ?? preferred ?? { name: DEFAULT_AGENT, version: undefined };
      const profile = findAgentProfile(agent.name);
      return { profile, agent, renderCommand: (firewall) => renderAgentCommand(profile, firewall, command.args), admin: false, callback: undefined, options };
    }
    case "login": {
      const profile = findAgentProfile(command.agent.name);
      const { args, callbackPort, callbackOnLoopback } = profile.login;
      const callback = callbackPort === null ? undefined : { port: callbackPort, onLoopback: callbackOnLoopback };
      return { profile, agent: command.agent, renderCommand: () => [...profile.command, ...args], admin: false, callback, options };
    }
    case "shell":
      return { ...requestShell(command.command ?? loginShell), admin: command.admin, options };
    case "run":
      return { ...requestShell(command.command), admin: false, options };
  }
}

/** The box is the sandbox: an agent works without asking in every box, as the start says when the firewall is off. */
function renderAgentCommand(profile: AgentProfile, firewall: boolean, args: readonly string[]): string[] {
  return [...profile.command, ...profile.fullPermissionArgs, ...(firewall ? profile.firewalledArgs : []), ...args];
}

function requestShell(command: readonly string[]): Omit<TypedRequest, "admin" | "options"> {
  return { profile: findAgentProfile("shell"), agent: undefined, renderCommand: () => [...command], callback: undefined };
}
