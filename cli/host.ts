/** What a command needs to know of the process it runs in; `main.ts` is the only place that asks. */
export type Host = {
  env: Readonly<Record<string, string | undefined>>;
  cwd: string;
  home: string;
  /** `~/.agentbox` */
  agentboxHome: string;
  /** Top level of the installation. */
  root: string;
  user: { uid: number; gid: number };
  /** Both stdin and stdout are terminals: the agent gets one. */
  terminal: boolean;
};
