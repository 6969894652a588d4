import type { NameWall } from "../../policy/policy-document.ts";
import { describeProxyEnvironment, DIRECT_LOOPBACK } from "../../policy/proxy-environment.ts";
import { isLoopbackProxy } from "./site-proxy.ts";

const PROXIES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "WS_PROXY", "WSS_PROXY"];

export type ProxyVariablesInput = {
  nameWall: Pick<NameWall, "httpPort" | "socksPort">;
  /** What the agent's environment is without them. */
  env: Readonly<Record<string, string>>;
  /** Where the box has a bundle with the authority that opens TLS; undefined where it is left closed. */
  caBundle: string | undefined;
  /** Names of the box's own hosts file. No resolver answers for them and no rule names them: rules name their addresses. */
  ownHosts: readonly string[];
};

/**
 * Adds what leads programs to the box's proxy. Nothing depends on it: what does not read it is led there by the
 * kernel. A user's own proxy gives way, since nothing else is reachable, but for one in the box itself and for an
 * empty value, which says that programs shall not be told; his exceptions and the options of his JVM stay beside ours.
 */
export function addProxyVariables({ nameWall, env, caBundle, ownHosts }: ProxyVariablesInput): { env: Record<string, string>; notices: string[] } {
  const { httpPort, socksPort } = nameWall;
  const { JAVA_TOOL_OPTIONS: javaOptions } = env;
  const ours = describeProxyEnvironment({
    httpUrl: `http://127.0.0.1:${httpPort}`,
    socksUrl: socksPort === null ? undefined : `socks5h://127.0.0.1:${socksPort}`,
    direct: [...new Set([...DIRECT_LOOPBACK, ...ownHosts, ...listExceptions(env)])],
    caBundle,
    ...(javaOptions === undefined ? {} : { javaOptions }),
  });
  const given = PROXIES.flatMap((name) => {
    // Programs that read both prefer the lower case.
    const value = env[name.toLowerCase()] ?? env[name];
    return value === undefined ? [] : [{ name, value }];
  });
  const kept = given.filter(({ value }) => value === "" || isLoopbackProxy(value));
  const refused = given.filter((one) => !kept.includes(one)).map(({ name }) => name);
  const { NODE_USE_ENV_PROXY: node } = env;
  return {
    env: {
      ...env,
      ...Object.fromEntries(ours),
      ...Object.fromEntries(kept.flatMap(({ name, value }) => [name, name.toLowerCase()].map((variant) => [variant, env[variant] ?? value]))),
      ...(node === undefined ? {} : { NODE_USE_ENV_PROXY: node }),
    },
    notices: refused.length === 0 ? [] : [`${refused.join(", ")} of yours: the box's own proxy takes ${refused.length === 1 ? "its" : "their"} place, since no other can be reached`],
  };
}

function listExceptions(env: ProxyVariablesInput["env"]): string[] {
  const words = (env["no_proxy"] ?? env["NO_PROXY"] ?? "").split(",").map((word) => word.trim());
  return words.filter((word) => word !== "");
}
