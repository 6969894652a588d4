import type { ParsedProxyConfig, ProxySettings } from "../../policy/proxy-config.ts";
import type { PublicSuffixTest } from "../../policy/wildcard-check.ts";

/** A configuration that was read and understood, and that its owner agreed to. */
export type LoadedConfig = {
  parsed: ParsedProxyConfig;
  /** Absolute path of its file, which may not be there. */
  path: string;
  /** The user's own file where a project's counts. */
  user: ParsedProxyConfig | undefined;
  settings: ProxySettings;
  isPublicSuffix: PublicSuffixTest;
  /** Paths of all files that were read, or would be if they were there. */
  watched: readonly string[];
};

/** Reads the configuration as it is now. Throws KnownError. */
export type ReadConfig = () => Promise<LoadedConfig>;
