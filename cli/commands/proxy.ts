import { dirname, resolve } from "node:path";
import { isatty } from "node:tty";
import { renderComplaint, KnownError } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import { describeProxyEnvironment, DIRECT_LOOPBACK, renderExports } from "../../policy/proxy-environment.ts";
import { keepSmall } from "../../proxy/standalone/collector.ts";
import { watchFiles } from "../../proxy/standalone/config-watch.ts";
import { renderAdminUrl, renderListener } from "../../proxy/standalone/describe-state.ts";
import type { LoadedConfig } from "../../proxy/standalone/loaded-config.ts";
import type { ProxyCommand } from "../args-proxy.ts";
import type { Edge } from "../edge.ts";
import { readSiteCa } from "../environment/site-ca.ts";
import { askOnTerminal } from "../ui/question.ts";
import { isWithin } from "../workspace/path-fact.ts";
import { findProject } from "./project-policy.ts";
import { approveHosts, askOnThisTerminal } from "./proxy-approve.ts";
import { describePlace, findProxyDirectory } from "./proxy-place.ts";
import { findProxySource, type ProxySource } from "./proxy-source.ts";
import { type RunningProxy, startProxy } from "./proxy-start.ts";

type Command = Extract<ProxyCommand, { verb: "proxy" }>;

/** How often a terminal is looked at whose programs were told that it goes. */
const CLOSING_MS = 500;

/** Runs the stand-alone proxy until it is told to end, and prints what leads programs to it. */
export async function runProxy(edge: Edge, { file, logDir, approve }: Command): Promise<number> {
  const { host, print, say } = edge;
  const source = findProxySource(host, file);
  const loaded = await source.read(host.terminal ? askOnTerminal : undefined);
  const directory = findProxyDirectory(host.agentboxHome);
  const running = await startProxy({ source, loaded, directory, logDir: logDir === undefined ? directory : resolve(host.cwd, logDir), approve, place: describePlace(host, file), siteCa: findSiteCa(edge), onBug: (error) => say(`this is a bug, please report it: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`) });
  const { promise, resolve: end } = Promise.withResolvers<string>();
  const stops = [watchConfig(running, say), takeSignals(edge, running, end), approveRefused(edge, running, { source, interrupt: () => end("ended by SIGINT") })];
  try {
    for (const warning of running.standalone.warnings) say(warning);
    warnReadableKey(edge, loaded);
    sayDisabled(running, loaded.path, say);
    await print(describeRunning(running, { path: loaded.path, javaOptions: host.env["JAVA_TOOL_OPTIONS"] }));
    keepSmall();
    running.close(await promise);
  } finally {
    for (const stop of stops) stop();
  }
  return 0;
}

/** The certificates of the site's authority, as the host's environment names it. */
function findSiteCa({ host, say }: Edge): readonly string[] {
  const { ca, notices } = readSiteCa({ caFile: null, hostEnv: host.env, cwd: host.cwd, writableRoots: [] });
  // The last one says what a box does with it.
  for (const notice of ca === null ? notices : notices.slice(0, -1)) say(notice);
  if (ca !== null) say(`the site's authority is ${quotePath(ca.file)}, named by ${ca.source}: it is trusted beside the system's`);
  return ca?.certificates ?? [];
}

/** Whoever starts a proxy that refuses everything has to know why before the first program fails. */
function sayDisabled({ standalone }: RunningProxy, path: string, say: Edge["say"]): void {
  if (standalone.settings.enabled) return;
  say("THE PROXY IS SWITCHED OFF: everything is answered with 503");
  say(`to switch it on, write into ${quotePath(path)}: [network_proxy] enabled = true`);
}

function describeRunning({ standalone, tokenFile, logFile, caBundle }: RunningProxy, { path, javaOptions }: { path: string; javaOptions: string | undefined }): string {
  const { http, socks, admin } = standalone.started;
  const [httpUrl, socksUrl] = [renderListener("http", http), socks === undefined ? undefined : renderListener("socks5h", socks)];
  const direct = standalone.describeConfig().policy.allow_local_binding ? DIRECT_LOOPBACK : [];
  const comments = [
    ["configuration", quotePath(path)],
    ["HTTP proxy", httpUrl],
    ["SOCKS5 proxy", socksUrl ?? "off"],
    ["admin API", renderAdminUrl(admin)],
    ["its token", quotePath(tokenFile)],
    ["decision log", quotePath(logFile)],
    ...(caBundle === undefined ? [] : [["certificates", quotePath(caBundle)] as const]),
  ];
  const head = comments.map(([name, value]) => `# ${`${name}:`.padEnd(15)} ${value}\n`).join("");
  return `${head}# A shell that reads these lines leads the programs that it starts to the proxy:\n${renderExports(describeProxyEnvironment({ httpUrl, socksUrl, direct, caBundle, javaOptions }))}`;
}

/** No box has the home directory as its project. */
function warnReadableKey({ host, say }: Edge, { path, settings }: LoadedConfig): void {
  const project = findProject(host);
  if (!settings.intercept || isWithin(host.home, project) || !isWithin(resolve(dirname(path), settings.caKeyPath), project)) return;
  say(`the key of the authority lies in the project, where the agents of its boxes can read it: name another place as ca_key_path in ${quotePath(path)}`);
}

/** Has a changed file take effect; one that is refused is told, and what was before serves on. */
function watchConfig({ standalone }: RunningProxy, say: Edge["say"]): () => void {
  const reload = (): void => void standalone.reload("the file was changed", { onlyChanged: true }).catch((error: unknown) => tellRefused(error, say));
  const stop = watchFiles({ list: () => standalone.watched, onChange: reload });
  // It may have been changed since it was read.
  reload();
  return stop;
}

function takeSignals({ host, say }: Edge, { standalone }: RunningProxy, end: (why: string) => void): () => void {
  let closing: NodeJS.Timeout | undefined;
  const endWithTerminal = (): boolean => {
    const gone = host.terminal && !isatty(0);
    if (gone) end("its terminal was closed");
    return gone;
  };
  const reload = (): void => {
    // The same signal comes from a terminal that is closed, or that will be in a moment, with which everything ends that was started there.
    if (endWithTerminal()) return;
    closing ??= setInterval(endWithTerminal, CLOSING_MS).unref();
    standalone.reload("asked for by SIGHUP").then(
      () => say("the configuration was read again"),
      (error: unknown) => tellRefused(error, say),
    );
  };
  const finish = (signal: NodeJS.Signals): void => end(`ended by ${signal}`);
  process.on("SIGHUP", reload).on("SIGINT", finish).on("SIGTERM", finish);
  return () => {
    clearInterval(closing);
    process.off("SIGHUP", reload).off("SIGINT", finish).off("SIGTERM", finish);
  };
}

function tellRefused(error: unknown, say: Edge["say"]): void {
  if (!(error instanceof KnownError)) throw error;
  for (const complaint of error.complaints) say(`the configuration is refused, and the one before serves on: ${renderComplaint(complaint)}`);
}

function approveRefused({ host, say }: Edge, { standalone }: RunningProxy, { source, interrupt }: { source: ProxySource; interrupt: () => void }): () => void {
  if (!host.terminal) {
    if (standalone.approves) say("nobody can be asked, since there is no terminal: hosts that are refused stay refused");
    return () => undefined;
  }
  const { ask, close } = askOnThisTerminal(interrupt);
  const stop = approveHosts({ standalone, write: source.allow, ask, say });
  return () => {
    stop();
    close();
  };
}
