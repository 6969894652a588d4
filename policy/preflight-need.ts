/** What made it plain: a URL among the arguments, another way to write a place, or what the tool asks by itself. */
type NeedForm = "url" | "remote" | "default";

/** A place that a program connects to. `web` is the protocol of a URL that the name wall reads, `method` that of its request. */
export type HostNeed = {
  kind: "host";
  program: string;
  /** As it was written. */
  host: string;
  port: number;
  form: NeedForm;
  web?: "http" | "https" | undefined;
  method?: string | undefined;
};

/** A socket of the machine: that of the ssh agent, or a path. Not `sure` where a key or a program of the box itself may serve instead. */
export type SocketNeed = { kind: "socket"; program: string; socket: string; sure: boolean };

/** Something that a command obviously needs. */
export type Need = HostNeed | SocketNeed;

/** The ssh agent, as the configuration names it. */
export const SSH_AGENT = "ssh-agent";
