import type { Socket as UdpSocket } from "node:dgram";
import { claimInternet, FIXED_HOSTS } from "./address-space.ts";
import { serveControl } from "./control-server.ts";
import type { ServeOptions } from "./control-schema.ts";
import { createDebianArchive } from "./debian-archive.ts";
import { createAnswerer } from "./dns-answer.ts";
import { serveDnsDatagrams, serveDnsStream, serveUdpEcho } from "./dns-server.ts";
import { createGitRepositories } from "./git-repositories.ts";
import { createGitSite } from "./git-site.ts";
import { createNpmRegistry } from "./npm-registry.ts";
import { createPythonIndex } from "./python-index.ts";
import { createRecorder, type Recorder } from "./recorder.ts";
import { FOREIGN_RESOLVERS, OTHER_UDP_ADDRESSES, SILENT, SSH_ON_443 } from "./special-names.ts";
import { readIdentity } from "./state-directory.ts";
import { createHostTable, echo, listenEverywhere, type Accept } from "./tcp-server.ts";
import { createWebServer, unwrapTls } from "./web-server.ts";
import { buildZone, readListedNames, type Zone } from "./zone.ts";

export type RunningServer = { close(): Promise<void> };

const ALLOWLISTS = new URL("../../allowlists", import.meta.url).pathname;

/** Starts the whole lab in the current network namespace; resolves when the control socket answers. */
export async function startServer(options: ServeOptions): Promise<RunningServer> {
  const [identity] = await Promise.all([readIdentity(options.stateDirectory), claimInternet(options)]);
  const zone = buildZone([...readListedNames(decodeURIComponent(ALLOWLISTS)), ...options.names]);
  const recorder = createRecorder();
  const answerer = createAnswerer(zone);
  const hosts = createHostTable(FIXED_HOSTS);
  const repositories = createGitRepositories(options.scratchDirectory);
  const resolvers = [options.v4.address, options.v6.address, ...FOREIGN_RESOLVERS];
  const web = createWebServer({
    sites: [createGitSite(repositories), createNpmRegistry(), createPythonIndex(), createDebianArchive()],
    recorder,
    answerer,
  });

  // Both are slow to load and not needed for the lab to be ready; the first caller waits for them.
  const issuer = lazily(async () => (await import("./certificates.ts")).createIssuer(identity));
  const ssh = lazily(async () => (await import("./ssh-server.ts")).createSshServer({ hostKey: identity.sshHostKey, repositories, recorder }));

  const acceptSsh: Accept = async (socket, arrival) => (await ssh()).accept(socket, arrival);
  const acceptTls = (onward: Accept): Accept => async (socket, arrival) => await onward(await unwrapTls(socket, arrival, await issuer()), arrival);
  const acceptHttps = acceptTls(web.accept);
  const sshOn443 = new Set(SSH_ON_443.flatMap((name) => addressesOf(zone, name)));
  const ports: [number, Accept][] = [
    [7, echo],
    [9, echo],
    [22, acceptSsh],
    [53, (socket) => serveDnsStream(socket, "tcp", { answerer, recorder })],
    [80, web.accept],
    [443, (socket, arrival) => (sshOn443.has(arrival.address) ? acceptSsh : acceptHttps)(socket, arrival)],
    [853, acceptTls((socket) => serveDnsStream(socket, "tls", { answerer, recorder }))],
    [5432, echo],
    [8080, web.accept],
    [8443, acceptHttps],
  ];
  const servers = await Promise.all(ports.map(([port, accept]) => listenEverywhere({ port, recorder, hosts, accept })));
  const datagrams = await Promise.all([
    ...resolvers.map((address) => serveDnsDatagrams(address, { answerer, recorder })),
    ...serveEchoes(zone, recorder),
  ]);
  const control = await serveControl(options.socket, {
    recorder,
    answerer,
    hosts,
    state: { ready: true, names: zone.names.length, resolvers },
  });
  void issuer();
  void ssh();

  return {
    close: async () => {
      for (const socket of datagrams) socket.close();
      for (const server of [control, ...servers]) server.close();
      await repositories.close();
    },
  };
}

/** The addresses of a name of the zone, IPv4 first. */
function addressesOf(zone: Zone, name: string): string[] {
  const record = zone.find(name);
  return [...(record?.a ?? []), ...(record?.aaaa ?? [])];
}

// UDP on every named address, so that refusing QUIC to an allowed host is the firewall's work. Loopback
// and mapped addresses are the dialling box's own, the silent ones belong to nobody.
function serveEchoes(zone: Zone, recorder: Recorder): Promise<UdpSocket>[] {
  const named = zone.names.flatMap((name) => addressesOf(zone, name)).filter((address) => !isNobodys(address));
  const addresses = new Set([...named, ...OTHER_UDP_ADDRESSES]);
  return [
    ...[...addresses].flatMap((address) => [443, 7].map((port) => serveUdpEcho(address, port, recorder))),
    ...[...OTHER_UDP_ADDRESSES, ...FOREIGN_RESOLVERS].flatMap((address) => [9, 853].map((port) => serveUdpEcho(address, port, recorder))),
  ];
}

function isNobodys(address: string): boolean {
  return /^(127\.|::1$|::ffff:)/.test(address) || address === SILENT.v4 || address === SILENT.v6;
}

function lazily<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}
