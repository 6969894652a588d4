/** What programs are told of the proxy. */
export type ProxyEnvironmentInput = {
  /** `http://HOST:PORT` and `socks5h://HOST:PORT`; without SOCKS everything is told of the first. */
  httpUrl: string;
  socksUrl: string | undefined;
  /** Hosts that programs connect to directly. */
  direct: readonly string[];
  /** A bundle of all certificates to trust, where TLS is opened. */
  caBundle: string | undefined;
  /** JAVA_TOOL_OPTIONS as the user set it. */
  javaOptions?: string | undefined;
};

/** The variables by which programs find a bundle: OpenSSL, Python, curl, Node, git, pip, cargo, npm, the tools of AWS. */
export const CA_VARIABLES: readonly string[] = ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "PIP_CERT", "CARGO_HTTP_CAINFO", "npm_config_cafile", "AWS_CA_BUNDLE"];

/** The hosts that are this machine, as NO_PROXY names them. */
export const DIRECT_LOOPBACK: readonly string[] = ["localhost", "127.0.0.1", "::1"];

/** Makes the variables that lead programs to the proxy; those of the proxy in both cases, since programs read one or the other. */
export function describeProxyEnvironment({ httpUrl, socksUrl, direct, caBundle, javaOptions }: ProxyEnvironmentInput): ReadonlyMap<string, string> {
  const proxies = { HTTP_PROXY: httpUrl, HTTPS_PROXY: httpUrl, ALL_PROXY: socksUrl ?? httpUrl, WS_PROXY: httpUrl, WSS_PROXY: httpUrl, NO_PROXY: direct.join(",") };
  return new Map([
    ...Object.entries(proxies).flatMap(([name, value]) => [[name, value] as const, [name.toLowerCase(), value] as const]),
    ["NODE_USE_ENV_PROXY", "1"],
    ["JAVA_TOOL_OPTIONS", [...(javaOptions === undefined || javaOptions === "" ? [] : [javaOptions]), ...listJavaOptions(httpUrl, direct)].join(" ")],
    ...(caBundle === undefined ? [] : CA_VARIABLES.map((name) => [name, caBundle] as const)),
  ]);
}

/** Without the last one a JVM leaves out loopback by itself. */
function listJavaOptions(httpUrl: string, direct: readonly string[]): string[] {
  const { hostname, port } = new URL(httpUrl);
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  return [...["http", "https"].flatMap((scheme) => [`-D${scheme}.proxyHost=${host}`, `-D${scheme}.proxyPort=${port === "" ? "80" : port}`]), `-Dhttp.nonProxyHosts=${direct.map((name) => (name.includes(":") ? `[${name}]` : name)).join("|")}`];
}

/** Renders variables as lines that any shell of the Bourne family reads. */
export function renderExports(variables: ReadonlyMap<string, string>): string {
  return [...variables].map(([name, value]) => `export ${name}='${value.replaceAll("'", "'\\''")}'\n`).join("");
}
