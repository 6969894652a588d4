import { spawn } from "node:child_process";
import type { Socket } from "node:net";
import ssh2, { type Connection, type ServerChannel } from "ssh2";
import { GIT_ENV, type GitRepositories } from "./git-repositories.ts";
import type { Recorder } from "./recorder.ts";
import type { Arrival } from "./tcp-server.ts";

export type SshServer = { accept: (socket: Socket, arrival: Arrival) => void };

/**
 * An SSH server that takes any public key, runs `git-upload-pack` and `git-receive-pack` on the lab's
 * repositories and tells everybody else that there is no shell here, as the great git hosts do.
 */
export function createSshServer(options: { hostKey: string; repositories: GitRepositories; recorder: Recorder }): SshServer {
  const { hostKey, repositories, recorder } = options;
  const arrivals = new Map<string, Arrival>();
  const server = new ssh2.Server({ hostKeys: [hostKey], ident: "agentbox-lab" }, (client, { ip, port }) => {
    const arrival = arrivals.get(`${ip} ${port}`) ?? { address: "", port: 22, client: ip };
    const note = (method: string, path: string) => recorder.request({ kind: "ssh", ...arrival, host: arrival.address, sni: "", method, path });
    serveClient(client, repositories, note);
  });
  return {
    accept: (socket, arrival) => {
      // ssh2 tells its listener nothing but the peer, which is unique while the connection lives.
      const peer = `${socket.remoteAddress ?? ""} ${socket.remotePort ?? 0}`;
      arrivals.set(peer, arrival);
      socket.once("close", () => arrivals.delete(peer));
      server.injectSocket(socket);
    },
  };
}

function serveClient(client: Connection, repositories: GitRepositories, note: (method: string, path: string) => void): void {
  client.on("error", () => {});
  client.on("authentication", (context) => {
    note("AUTH", `${context.username} ${context.method}`);
    if (context.method === "publickey") context.accept();
    else context.reject(["publickey"]);
  });
  client.on("session", (acceptSession) => {
    const session = acceptSession();
    session.on("env", (accept) => {
      accept?.();
    });
    session.on("pty", (accept) => {
      accept?.();
    });
    session.on("shell", (accept) => refuseShell(accept()));
    session.on("exec", (accept, _reject, { command }) => {
      note("EXEC", command);
      const channel = accept();
      const [, service, path] = /^git[- ](upload-pack|receive-pack) '?([^']+)'?$/.exec(command) ?? [];
      if (service === undefined || path === undefined) refuseShell(channel);
      else void runGit({ channel, service, path, repositories });
    });
  });
}

function refuseShell(channel: ServerChannel): void {
  channel.stderr.write("You have reached the lab's SSH server. It gives no shell.\n");
  channel.exit(1);
  channel.end();
}

async function runGit(options: { channel: ServerChannel; service: string; path: string; repositories: GitRepositories }): Promise<void> {
  const { channel, service, path, repositories } = options;
  const repository = await repositories.open(path).catch(() => undefined);
  if (repository === undefined) {
    channel.stderr.write("no such repository in the lab\n");
    channel.exit(128);
    channel.end();
    return;
  }
  const child = spawn("git", [service, repository], { cwd: await repositories.root(), env: GIT_ENV, stdio: ["pipe", "pipe", "pipe"] });
  child.stdin.on("error", () => {});
  channel.pipe(child.stdin);
  child.stdout.pipe(channel, { end: false });
  child.stderr.pipe(channel.stderr, { end: false });
  channel.on("close", () => child.kill());
  child.on("error", () => channel.close());
  child.on("close", (code) => {
    channel.exit(code ?? 1);
    channel.end();
  });
}
