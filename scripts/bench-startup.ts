import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { execa } from "execa";
import { renderCreateArgv } from "../cli/engine/container-argv.ts";
import type { ContainerPlan } from "../cli/engine/container-plan.ts";
import { buildSeccompProfile } from "../cli/engine/seccomp-profile.ts";
import type { Mount } from "../cli/mount.ts";
import { planKeeperMounts } from "../cli/session/plan-containers.ts";
import { BOX_SPEC_PATH, type BoxSpec } from "../policy/box-spec.ts";
import { emptyDocument } from "../policy/policy-document.ts";
import { PROXY_SECRETS_FILE } from "../policy/proxy-secrets.ts";
import { UsageError } from "../policy/errors.ts";
import { type DockerLab, startDockerLab } from "../test/lab/docker.ts";
import { syntheticName } from "../test/lab/zone.ts";
import { runScript } from "./edge.ts";
import { type Case, measureInterleaved, renderTable, summarize, type Summary } from "./measure.ts";

/**
 * Measures what the firewall adds to a warm start: the same image and entrypoint without and with it, for
 * lists of different length, and a shell script that does the same steps one process at a time. Boxes run
 * `true` against the lab, whose resolver answers after 20 ms.
 */
const SIZES = [7, 60, 1000];
const REFERENCE_SIZES = [60, 1000];
const CRITICAL = ["github.com", "api.anthropic.com"];
const RESOLVER_DELAY_MS = 20;
const MIN_ROUNDS = 15;
const ALLOWLISTS = "/usr/local/share/agentbox/allowlists";

type Options = { image: string; rounds: number; json: string; reference: boolean };

async function main(argv: readonly string[]): Promise<void> {
  const options = readOptions(argv);
  const directory = mkdtempSync(join(tmpdir(), "agentbox-bench-"));
  try {
    await using lab = await startDockerLab({ image: options.image });
    await lab.control.setDns({ "*": { delayMs: RESOLVER_DELAY_MS } });
    const cases = makeCases(lab, directory, options);
    const samples = await measureInterleaved(cases, options.rounds);
    report(options, new Map([...samples].map(([name, values]) => [name, summarize(values)])));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function readOptions(argv: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...argv],
    allowNegative: true,
    options: {
      image: { type: "string" },
      rounds: { type: "string", default: String(MIN_ROUNDS) },
      /** The reference takes minutes a round. */
      reference: { type: "boolean", default: true },
      json: { type: "string", default: join(import.meta.dirname, "../build/bench-startup.json") },
    },
  });
  if (values.image === undefined) {
    throw new UsageError({ what: "--image is missing", expected: "an image of AgentBox that trusts the lab's CA", fix: "npm run quickstart prints one" });
  }
  return { image: values.image, rounds: Number(values.rounds), json: values.json, reference: values.reference };
}

function makeCases(lab: DockerLab, directory: string, { image, reference }: Options): Case[] {
  writeFileSync(join(directory, "seccomp.json"), JSON.stringify(buildSeccompProfile()));
  const box = (size: number, firewall: boolean): string[] => makeBoxArgv({ lab, directory, image, size, firewall });
  return [
    { name: "firewall off", run: () => timeRun(box(60, false)) },
    ...SIZES.map((size): Case => ({ name: `firewall on, ${size} names`, run: () => timeRun(box(size, true)) })),
    ...(reference ? REFERENCE_SIZES : []).map((size): Case => ({ name: `shell reference, ${size} names`, run: () => timeRun(makeReferenceArgv({ lab, directory, image, size })) })),
  ];
}

type BoxInput = { lab: DockerLab; directory: string; image: string; size: number };

/** The argv that the command line would use, with another list mounted over the image's. */
function makeBoxArgv({ lab, directory, image, size, firewall }: BoxInput & { firewall: boolean }): string[] {
  const own = join(directory, `${size}-${firewall}`);
  mkdirSync(join(own, "allowlists"), { recursive: true });
  writeFileSync(join(own, "allowlists/services.sh"), `ALLOWED_SERVICES=(\n${renderWords(makeNames(size))})\nCRITICAL_SERVICES=(\n${renderWords(CRITICAL)})\n`);
  writeFileSync(join(own, "allowlists/github.sh"), 'GITHUB_RANGES_DATE="2025-07-25"\nGITHUB_RANGES=(\n  "140.82.112.0/20"\n)\n');
  mkdirSync(join(own, "box"), { recursive: true });
  writeFileSync(join(own, "box/box.json"), JSON.stringify(makeSpec(lab, firewall)), { mode: 0o644 });
  writeFileSync(join(own, "box/resolv.conf"), "nameserver 127.0.0.1\n", { mode: 0o644 });
  mkdirSync(join(own, "log"), { recursive: true });
  chmodSync(join(own, "log"), 0o777);
  writeFileSync(join(own, "log", PROXY_SECRETS_FILE), JSON.stringify({ version: 1, authority: null, upstream: null }));
  const walls: Mount[] = [{ kind: "bind", source: join(own, "box/resolv.conf"), target: "/etc/resolv.conf", readOnly: true }, ...planKeeperMounts(join(own, "log"))];
  const mounts: Mount[] = [
    { kind: "bind", source: join(own, "box"), target: dirname(BOX_SPEC_PATH), readOnly: true },
    { kind: "bind", source: join(own, "allowlists"), target: ALLOWLISTS, readOnly: true },
    ...(firewall ? walls : []),
  ];
  const plan: ContainerPlan = {
    name: "",
    role: "box",
    image,
    session: "bench",
    owner: String(process.pid),
    project: "bench",
    home: "bench",
    terminal: false,
    user: { uid: 0, gid: 0 },
    firewall,
    jsonLog: false,
    network: { kind: "bridge", name: lab.network, disableIpv6: false },
    mounts,
    ports: [],
    dns: [lab.dns],
    addHosts: [],
    memory: undefined,
    cpus: undefined,
    seccomp: join(directory, "seccomp.json"),
  };
  // `create --name ""` becomes `run --rm`.
  return ["run", "--rm", ...renderCreateArgv(plan, { kind: "docker", rootless: false, selinux: false, hostOptions: [] }).slice(3)];
}

function renderWords(names: readonly string[]): string {
  return names.map((name) => `  "${name}"\n`).join("");
}

function makeNames(size: number): string[] {
  return [...CRITICAL, ...Array.from({ length: size - CRITICAL.length }, (_, index) => syntheticName(index + 1))];
}

function makeSpec(lab: DockerLab, firewall: boolean): BoxSpec {
  return {
    version: 2,
    session: "bench",
    firewall,
    mode: firewall ? "allowlist" : "full",
    role: "box",
    policy: emptyDocument({ name: "shell", hosts: [], critical: null }),
    user: { uid: 1000, gid: 1000, home: "/home/agent" },
    admin: false,
    command: ["true"],
    cwd: "/",
    env: { PATH: "/usr/local/bin:/usr/bin:/bin" },
    dns: { upstreams: [lab.dns] },
    published: [],
    gateways: [],
  };
}

function makeReferenceArgv({ lab, directory, image, size }: BoxInput): string[] {
  const own = join(directory, `reference-${size}`);
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, "names"), makeNames(size).map((name) => `${name}\n`).join(""));
  writeFileSync(join(own, "critical"), CRITICAL.map((name) => `${name}\n`).join(""));
  const script = join(import.meta.dirname, "reference-firewall.sh");
  return [
    ...["run", "--rm", "--init", "--cap-drop", "ALL", "--network", lab.network, "--dns", lab.dns, "--log-driver", "none"],
    ...["NET_ADMIN", "NET_RAW", "SETUID", "SETGID", "SETPCAP", "KILL"].flatMap((capability) => ["--cap-add", capability]),
    ...["--env", `UPSTREAMS=${lab.dns}`, "--mount", `type=bind,source=${own},target=/bench,readonly`],
    ...["--mount", `type=bind,source=${script},target=/reference.sh,readonly`],
    ...["--entrypoint", "/bin/sh", image, "/reference.sh", "/bench/names", "/bench/critical", "true"],
  ];
}

async function timeRun(argv: readonly string[]): Promise<number> {
  const started = performance.now();
  await execa("docker", argv, { stdin: "ignore" });
  return performance.now() - started;
}

function report({ rounds, json, reference }: Options, summaries: ReadonlyMap<string, Summary>): void {
  const off = summaries.get("firewall off")?.median ?? Number.NaN;
  const added = (name: string): number => (summaries.get(name)?.median ?? Number.NaN) - off;
  const rows = [...summaries].map(([name, { q1, median, q3 }]) => [name, ...[median, q1, q3, median - off].map((ms) => ms.toFixed(0))]);
  process.stdout.write(`${renderTable([["case", "median ms", "q1", "q3", "added ms"], ...rows])}\n\n`);
  const ratios = (reference ? REFERENCE_SIZES : []).map((size) => ({ size, ratio: added(`shell reference, ${size} names`) / added(`firewall on, ${size} names`) }));
  for (const { size, ratio } of ratios) process.stdout.write(`${size} names: the shell reference adds ${ratio.toFixed(1)} times as much\n`);
  mkdirSync(dirname(json), { recursive: true });
  const document = { benchmark: "startup", node: process.version, cpu: cpus()[0]?.model ?? "unknown", rounds, resolverDelayMs: RESOLVER_DELAY_MS, cases: Object.fromEntries(summaries), ratios };
  writeFileSync(json, `${JSON.stringify(document, undefined, 2)}\n`);
}

await runScript(() => main(process.argv.slice(2)));
