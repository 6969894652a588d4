import { existsSync, openSync } from "node:fs";
import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { execa } from "execa";
import { EngineError } from "../policy/errors.ts";

/** One thing a script needs: the program (or the absolute path of a library) that shows it is there, its Debian package, and what it is for. */
export type Need = { program: string; packages: readonly string[]; why: string };

/** Without an engine of its own a machine gets Docker, and the tool that makes a base image without a registry. */
export const ENGINE_NEEDS: readonly Need[] = [
  { program: "dockerd", packages: ["docker.io", "iptables"], why: "a container engine" },
  { program: "debootstrap", packages: ["debootstrap"], why: "a base image where no image registry can be reached" },
];

/** What the tests use beside the engine. */
export const TEST_NEEDS: readonly Need[] = [
  { program: "iptables-restore", packages: ["iptables"], why: "the kernel tests" },
  { program: "ipset", packages: ["ipset"], why: "the kernel tests" },
  { program: "nft", packages: ["nftables"], why: "the kernel tests" },
  { program: "ulogd", packages: ["ulogd2", "ulogd2-json"], why: "the record of refused packets" },
  { program: "conntrack", packages: ["conntrack"], why: "what the kernel remembers of connections" },
  { program: "tini", packages: ["tini"], why: "the init of boxes in namespaces" },
  { program: "ip", packages: ["iproute2"], why: "the lab's namespaces" },
  { program: "curl", packages: ["curl"], why: "clients of the lab" },
  { program: "python3", packages: ["python3"], why: "clients of the lab" },
  { program: "pip3", packages: ["python3-pip"], why: "clients of the lab" },
  { program: "/usr/lib/python3/dist-packages/requests", packages: ["python3-requests"], why: "clients of the lab" },
  { program: "javac", packages: ["openjdk-17-jdk-headless"], why: "clients of the lab" },
  { program: "git", packages: ["git"], why: "clients of the lab" },
  { program: "dig", packages: ["bind9-dnsutils"], why: "clients of the lab" },
  { program: "ssh", packages: ["openssh-client"], why: "clients of the lab" },
  { program: "podman", packages: ["podman", "runc"], why: "the smoke rows on Podman" },
  { program: "runc", packages: ["runc"], why: "Podman on hosts with mixed control groups, which its other runtime refuses" },
  { program: "catatonit", packages: ["catatonit"], why: "the init of Podman's boxes" },
  { program: "netavark", packages: ["netavark", "aardvark-dns", "containernetworking-plugins"], why: "Podman's networks" },
  { program: "jq", packages: ["jq"], why: "the tests in boxes" },
  { program: "tmux", packages: ["tmux"], why: "the terminal tests" },
];

/**
 * Installs what is missing, saying what and why first. Only root on a Debian machine can; elsewhere
 * EngineError lists what to install.
 */
export async function provision(needs: readonly Need[]): Promise<void> {
  const missing = needs.filter(({ program }) => !isInstalled(program));
  if (missing.length === 0) return;
  const packages = [...new Set(missing.flatMap((need) => need.packages))];
  if (process.getuid?.() !== 0 || !isInstalled("apt-get")) {
    throw new EngineError(
      missing.map(({ program, why }) => ({ what: `${program} is missing`, expected: why, fix: `as root: apt-get install ${packages.join(" ")}` })),
    );
  }
  for (const { program, packages: wanted, why } of missing) say(`${program} is missing, needed for ${why}: installing ${wanted.join(", ")}`);
  const options = { stdio: ["ignore", 2, 2], env: { DEBIAN_FRONTEND: "noninteractive" } } as const;
  await execa("apt-get", ["-q", "update"], options);
  await execa("apt-get", ["-q", "install", "--yes", "--no-install-recommends", ...packages], options);
}

/** Makes sure that a container engine answers: Docker, or else Podman, or else Docker is installed and started. Returns its name. */
export async function ensureEngine(): Promise<"docker" | "podman"> {
  if ((await answers("docker")) || !(await answers("podman"))) {
    await ensureDocker();
    return "docker";
  }
  return "podman";
}

/** Makes sure that Docker answers: installs and starts it where it does not. */
export async function ensureDocker(): Promise<void> {
  if (await answers("docker")) return;
  if (isInstalled("docker") && (process.platform !== "linux" || process.getuid?.() !== 0)) {
    throw new EngineError({
      what: "Docker is installed but does not answer",
      expected: "a daemon that this user may talk to",
      fix: "start Docker, or see whether your user may use its socket (group docker)",
    });
  }
  await provision(ENGINE_NEEDS);
  await startDocker();
}

async function startDocker(): Promise<void> {
  if (existsSync("/run/systemd/system")) {
    say("starting Docker: systemctl start docker");
    await execa("systemctl", ["start", "docker"], { stdio: ["ignore", 2, 2] });
  } else {
    const log = "/var/log/agentbox-dockerd.log";
    const output = openSync(log, "a");
    const daemon = spawn("dockerd", [], { detached: true, stdio: ["ignore", output, output], env: { ...process.env, PATH: searchPath() } });
    daemon.unref();
    say(`starting Docker: dockerd, process ${daemon.pid}, log in ${log}; it stays when this ends`);
  }
  const limit = performance.now() + 60_000;
  while (!(await answers("docker"))) {
    if (performance.now() > limit) throw new EngineError({ what: "dockerd does not answer", fix: "see its log, then try again" });
    await sleep(250);
  }
}

async function answers(engine: string): Promise<boolean> {
  if (!isInstalled(engine)) return false;
  const { exitCode } = await execa(engine, ["version", "--format", "{{.Server.Version}}"], { reject: false, timeout: 10_000, stdio: "ignore" });
  return exitCode === 0;
}

function isInstalled(program: string): boolean {
  return searchPath()
    .split(":")
    .some((dir) => dir !== "" && existsSync(resolve(dir, program)));
}

/** A login of root need not have the directories of system programs in its PATH; Podman keeps its helpers in their own. */
function searchPath(): string {
  return `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin:/usr/lib/podman`;
}

function say(text: string): void {
  process.stderr.write(`agentbox: ${text}\n`);
}
