/** The user and group that a program gets. */
export type Ids = { uid: number; gid: number };

/**
 * The start of an argv that gives up every privilege for good and then runs what follows: no capability in
 * any set, none to be gained by any later program, no further group. Every program that enters a box goes
 * through it, the agent's and later ones alike.
 */
export function dropPrivileges({ uid, gid }: Ids): string[] {
  return [
    "/usr/bin/setpriv",
    "--reuid",
    String(uid),
    "--regid",
    String(gid),
    "--clear-groups",
    "--bounding-set=-all",
    "--inh-caps=-all",
    "--ambient-caps=-all",
    "--no-new-privs",
    "--",
  ];
}
