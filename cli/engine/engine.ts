import type { EngineClient } from "./client.ts";

export const engineKinds = ["docker", "podman"] as const;
export type EngineKind = (typeof engineKinds)[number];

/** A container engine that answered, with the traits that the launch depends on. */
export type Engine = {
  kind: EngineKind;
  client: EngineClient;
  version: string;
  /** Root of a box is the user who runs the engine. */
  rootless: boolean;
  /** Boxes run on this machine's own kernel, not in a virtual machine: a file has the same number inside and outside. */
  sameKernel: boolean;
  /** The host labels files, so a box reads the project only with its label check off. */
  selinux: boolean;
  /** Options that `create` needs on this host. */
  hostOptions: readonly string[];
  /** A bridge network that a box joins when none is named. */
  defaultNetwork: string;
};
