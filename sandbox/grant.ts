import { z } from "zod";
import type { HeldDirectory } from "./held-path.ts";
import { sessionIdSchema } from "./request.ts";

const accessSchema = z.strictObject({ read: z.boolean(), write: z.boolean(), create: z.boolean(), delete: z.boolean() });

/** What may be done below a root. `write` changes files that exist, `create` makes new ones, `delete` also covers moving away. */
export type Access = z.infer<typeof accessSchema>;

export const grantSpecSchema = z.strictObject({
  sessionId: sessionIdSchema,
  /** An absolute path of a directory. */
  root: z.string().min(1),
  access: accessSchema,
  /** Results of the session belong here. */
  output: z.boolean().optional(),
  /** Names that begin with a dot and system names may be used too. */
  hidden: z.boolean().optional(),
  /** Files with several names may be read and written (package stores are made of them); one of the names may lie outside the root. */
  hardLinks: z.boolean().optional(),
  /** Deletions go to a trash inside the root, from which they can be restored. */
  trash: z.boolean().optional(),
  /** Life in milliseconds from now on; without it the grant ends with its session. */
  expires: z.number().positive().optional(),
});
export type GrantSpec = z.infer<typeof grantSpecSchema>;

/** A granted folder. Its directory is held open from `add` to `revoke`, so what its name leads to later changes nothing. */
export type Grant = {
  readonly id: string;
  readonly sessionId: string;
  /** The canonical path. */
  readonly root: string;
  /** The path as it was written, where it leads to the root through a link. */
  readonly alias: string | undefined;
  readonly access: Access;
  readonly output: boolean;
  readonly hidden: boolean;
  readonly hardLinks: boolean;
  readonly trash: boolean;
  /** On the manager's clock, in milliseconds. */
  readonly expiresAt: number | undefined;
  readonly directory: HeldDirectory;
  readonly device: number;
};
