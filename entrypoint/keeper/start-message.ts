import { z } from "zod";
import { listTextsSchema, policyDocumentSchema } from "../../policy/policy-document.ts";

/**
 * What the entrypoint hands to the keeper, as JSON on descriptor 3, once the network is closed: the
 * keeper touches nothing before. Hosts file and resolvers are as they were at boot.
 */
export const keeperStartSchema = z.strictObject({
  session: z.string(),
  document: policyDocumentSchema,
  lists: listTextsSchema,
  hosts: z.record(z.string(), z.array(z.string())),
  upstreams: z.array(z.string()),
  engineResolver: z.string().nullable(),
  backend: z.enum(["ipset", "nft"]),
});

export type KeeperStart = z.infer<typeof keeperStartSchema>;
