import { mkdirSync } from "node:fs";
import { getCACertificates } from "node:tls";
import type { AllowPlace } from "../../policy/allow-command.ts";
import { DECISION_LOG_FILE } from "../../policy/decision-record.ts";
import { OutputError, UsageError } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import type { ListenAddress, ProxySettings } from "../../policy/proxy-config.ts";
import { type DialParts, Dialler } from "../../proxy/access/dial.ts";
import { serveAdmin } from "../../proxy/admin/admin-server.ts";
import { recordStarted } from "../../proxy/admin/started-proxy.ts";
import { findTokenFile, makeToken, removeTokenFile, writeTokenFile } from "../../proxy/admin/token-file.ts";
import { DecisionLog } from "../../proxy/log/decision-log.ts";
import { LogFile } from "../../proxy/log/log-file.ts";
import { PendingFile } from "../../proxy/log/pending-file.ts";
import { renderAdminUrl, renderListener } from "../../proxy/standalone/describe-state.ts";
import { LineFeed } from "../../proxy/standalone/line-feed.ts";
import type { LoadedConfig } from "../../proxy/standalone/loaded-config.ts";
import { findPortHolder } from "../../proxy/standalone/holder.ts";
import { lockLog } from "../../proxy/standalone/log-lock.ts";
import { Standalone } from "../../proxy/standalone/standalone.ts";
import { lookupBySystem } from "../../proxy/standalone/system-lookup.ts";
import { startWeb } from "../../proxy/web.ts";
import { errorCode } from "../workspace/path-fact.ts";
import type { ProxySource } from "./proxy-source.ts";

export type ProxyStart = {
  source: ProxySource;
  loaded: LoadedConfig;
  /** Where tokens and bundles go. */
  directory: string;
  logDir: string;
  approve: boolean;
  place: AllowPlace;
  /** Is told of what should not happen, and ends nothing. */
  onBug: (error: unknown) => void;
  /** Certificates of the site, to verify servers and the site's proxy with beside the system's. */
  siteCa: readonly string[];
};

/** A proxy that serves. `caBundle` is what programs have to trust where TLS is opened. */
export type RunningProxy = { standalone: Standalone; tokenFile: string; logFile: string; caBundle: string | undefined; close: (why: string) => void };

/** One log for all starts, so that its numbers go on where the last one ended. */
const SESSION = "proxy";

/** Starts the stand-alone proxy. Throws KnownError, and leaves nothing behind, where it cannot serve. */
export async function startProxy({ source, loaded, directory, logDir, approve, place, siteCa, onBug }: ProxyStart): Promise<RunningProxy> {
  const undo: (() => void)[] = [];
  const close = (): void => {
    for (const step of undo.splice(0).toReversed()) step();
  };
  try {
    const feed = new LineFeed();
    const log = openLog(logDir, { feed, place }, undo);
    const lookup = lookupBySystem();
    const standalone = new Standalone({ loaded, read: async () => await source.read(), log, logDir, feed, lookup, approve });
    undo.push(() => standalone.stop());
    const { http, socks, admin } = standalone.started;
    const { access, flows, started } = standalone;
    // Loaded only where TLS is opened: it takes more memory than the rest.
    const interception = started.intercept ? await (await import("./proxy-interception.ts")).openInterception({ loaded, directory, siteCa, log }) : undefined;
    const listeners = { http: [listenOn(http)], socks: socks === undefined ? [] : [listenOn(socks)], plain: [], tls: [] };
    const web = await startWeb({ access, flows, dialler: new Dialler(trustLater(lookup, siteCa)), listeners, makeIntercept: interception?.makeIntercept }).catch((error: unknown) => refuseListener(error));
    undo.push(web.close);
    const token = makeToken();
    undo.push(await serveAdmin({ where: admin, token, subject: standalone, onBug }).catch((error: unknown) => refuseListener(error)));
    const tokenFile = findTokenFile(directory, admin);
    writeTokenFile(tokenFile, token);
    undo.push(() => removeTokenFile(tokenFile, token), recordStarted(directory, loaded.path, admin));
    log.write({ kind: "event", event: "start", detail: describeStart(started, loaded), added: [], removed: [] });
    const end = (why: string): void => {
      log.write({ kind: "event", event: "stop", detail: why, added: [], removed: [] });
      close();
    };
    return { standalone, tokenFile, logFile: `${logDir}/${DECISION_LOG_FILE}`, caBundle: interception?.caBundle, close: end };
  } catch (error) {
    close();
    throw error;
  }
}

/** The log is there before anything else, since what cannot be written down is not done. */
function openLog(logDir: string, { feed, place }: { feed: LineFeed; place: AllowPlace }, undo: (() => void)[]): DecisionLog {
  try {
    mkdirSync(logDir, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw refuseLog(logDir, errorCode(error));
  }
  undo.push(lockLog(logDir));
  const log = new DecisionLog(new LogFile(logDir), { onLine: (line) => feed.take(line), place, pending: new PendingFile(logDir) });
  log.start(SESSION);
  undo.push(() => log.close());
  if (log.failing !== undefined) throw refuseLog(logDir, log.failing);
  return log;
}

function refuseLog(logDir: string, why: string): OutputError {
  return new OutputError({ what: `the decision log cannot be kept here (${why})`, expected: "a directory that you may write", fix: "make room, correct its permissions, or name another one: --log DIR", place: { file: logDir } });
}

function listenOn({ address, port }: ListenAddress): { host: string; port: number } {
  return { host: address, port };
}

/** Node's own certificates are read when they are first needed: for a site's proxy that speaks TLS, which may be configured any time. */
function trustLater(lookup: DialParts["lookup"], siteCa: ProxyStart["siteCa"]): DialParts {
  let trusted: { ca: string | undefined } | undefined;
  return {
    lookup,
    get ca() {
      trusted ??= { ca: readTrusted(siteCa) };
      return trusted.ca;
    },
  };
}

/** Naming authorities takes the place of Node's own list; without any of the site there is nothing to name. */
function readTrusted(siteCa: readonly string[]): string | undefined {
  return siteCa.length === 0 ? undefined : [...getCACertificates("default"), ...siteCa].join("\n");
}

function describeStart({ http, socks, admin, intercept }: ProxySettings, { path, settings }: LoadedConfig): string {
  const where = [renderListener("http", http), ...(socks === undefined ? [] : [renderListener("socks5h", socks)]), renderAdminUrl(admin)].join(", ");
  return `process ${process.pid}; ${quotePath(path)}; ${where}${intercept ? "; TLS is opened" : ""}${settings.enabled ? "" : "; switched off"}`;
}

/** Says who has the port, which usually is this very command. */
function refuseListener(error: unknown): never {
  if (!(error instanceof Error)) throw error;
  const code = errorCode(error);
  const port = "port" in error && typeof error.port === "number" ? error.port : undefined;
  const place = "address" in error ? `${String(error.address)}${port === undefined ? "" : `:${port}`}` : "the address";
  if (code === "EADDRINUSE") {
    const owner = port === undefined ? undefined : findPortHolder(port);
    throw new UsageError({ what: `${place} is taken by ${owner ?? "another program"}`, expected: "addresses that are free", fix: "end it, or write other ports as proxy_url, socks_url and admin_url in [network_proxy]" }, { cause: error });
  }
  if (code === "EACCES" || code === "EADDRNOTAVAIL") {
    throw new UsageError({ what: `nothing can listen on ${place} (${code})`, expected: "an address of this machine and a port from 1024 on", fix: "write another one in [network_proxy]" }, { cause: error });
  }
  throw error;
}
