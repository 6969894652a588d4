import type { Ids } from "./privileges.ts";

/**
 * Ids that no agent ever gets: the proxy's and the keeper's. They share a group, which alone may enter
 * `KEEPER_DIR`. Below 65,536, so that they exist in a user namespace of the usual size.
 */
export const PROXY_IDS: Ids = { uid: 64_990, gid: 64_990 };
export const KEEPER_IDS: Ids = { uid: 64_991, gid: 64_990 };

/** Tells whether a host user's uid belongs to a program of the box. */
export function isReservedUid(uid: number): boolean {
  return uid === PROXY_IDS.uid || uid === KEEPER_IDS.uid;
}
