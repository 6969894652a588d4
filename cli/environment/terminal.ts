/** Terminals that the image's terminfo (Debian's ncurses-base) describes. */
const DESCRIBED = new Set([
  "ansi",
  "dumb",
  "linux",
  "rxvt",
  "rxvt-unicode",
  "rxvt-unicode-256color",
  "screen",
  "screen-256color",
  "tmux",
  "tmux-256color",
  "vt100",
  "vt220",
  "xterm",
  "xterm-256color",
  "xterm-color",
]);
const WORD = /^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$/;
const ZONE = /^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+){0,2}$/;

/** Takes over from the host what the terminal and the clock look like, and nothing else; odd values are left out. */
export function renderTerminal(hostEnv: NodeJS.ProcessEnv, hostZone: string): Record<string, string> {
  const { TERM = "", COLORTERM = "", TZ = "" } = hostEnv;
  const zone = [TZ, hostZone].find((name) => ZONE.test(name));
  return {
    TERM: chooseTerminal(TERM),
    ...(WORD.test(COLORTERM) ? { COLORTERM } : {}),
    ...(zone === undefined ? {} : { TZ: zone }),
  };
}

/** Newer terminals (kitty, ghostty, foot) all understand xterm's sequences, under a name the box does not know. */
function chooseTerminal(term: string): string {
  if (DESCRIBED.has(term)) return term;
  return WORD.test(term) ? "xterm-256color" : "dumb";
}
