import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { z } from "zod";
import { prepareTestImage } from "../test/image/test-image.ts";
import { type DockerLab, startDockerLab } from "../test/lab/docker.ts";
import { runScript } from "./edge.ts";
import { renderTable } from "./measure.ts";
import { ensureEngine } from "./provision.ts";

/**
 * `npm run quickstart`: from a bare machine to a firewalled box and a proof of it. Everything that is tried
 * goes to the lab, an internet in a container; nothing leaves this machine.
 */
type Attempt = { what: string; target: string; allowed: boolean };

const ATTEMPTS: readonly Attempt[] = [
  { what: "HTTPS to an allowed name (github.com)", target: "tls:github.com:443", allowed: true },
  { what: "HTTPS to the agent's API (api.anthropic.com)", target: "tls:api.anthropic.com:443", allowed: true },
  { what: "HTTPS to an allowed name over IPv6", target: "tls:[2606:50c0:8000::3]:443:github.com", allowed: true },
  { what: "SSH to GitHub", target: "tcp:github.com:22", allowed: true },
  { what: "HTTPS to any other name (example.com)", target: "tls:example.com:443", allowed: false },
  { what: "the same by its address, over IPv6", target: "tls:[2606:2800:220:3::34]:443:example.com", allowed: false },
  { what: "another name at an allowed address", target: "tls:140.82.112.3:443:example.com", allowed: false },
  { what: "another port of an allowed name", target: "tcp:github.com:8443", allowed: false },
  { what: "QUIC to an allowed address", target: "udp:140.82.112.3:443", allowed: false },
  { what: "a foreign resolver (8.8.8.8, UDP 53)", target: "udp:8.8.8.8:53", allowed: false },
  { what: "DNS over TLS (1.1.1.1, 853)", target: "tcp:1.1.1.1:853", allowed: false },
  { what: "the cloud's metadata address", target: "http:169.254.169.254:80", allowed: false },
  { what: "a machine on the LAN", target: "http:192.168.1.1:80", allowed: false },
];

const ROOT = join(import.meta.dirname, "..");
const AGENTBOX = join(ROOT, "agentbox");
/** Which wall gives which answer. */
const WALLS: Readonly<Record<string, string>> = { ENOTFOUND: "DNS wall", ECONNREFUSED: "address wall", EPERM: "address wall", ERR_SSL_TLSV1_ALERT_ACCESS_DENIED: "name wall", "blocked-by-allowlist": "name wall" };
const outcomesSchema = z.array(z.object({ target: z.string(), outcome: z.string(), ms: z.number() }));
type Outcomes = ReadonlyMap<string, { outcome: string; ms: number }>;

async function main(): Promise<boolean> {
  const engine = await ensureEngine();
  say("building the image (a few minutes the first time)");
  const { image, home } = await prepareTestImage({ agents: ["none"] });
  say("starting the lab");
  const project = mkdtempSync(join(tmpdir(), "agentbox-quickstart-"));
  try {
    await using lab = await startDockerLab({ engine, image });
    copyFileSync(join(ROOT, "test/fixtures/reach.mjs"), join(project, "reach.mjs"));
    const run = (firewall: "0" | "1"): Promise<Outcomes> => tryAll({ lab, engine, home, project, firewall });
    say("one box without a firewall, as the control");
    const off = await run("0");
    say("one box with AGENTBOX_FIREWALL=1");
    const on = await run("1");
    return report(off, on);
  } finally {
    rmSync(project, { recursive: true, force: true });
  }
}

async function tryAll(input: { lab: DockerLab; engine: string; home: string; project: string; firewall: "0" | "1" }): Promise<Outcomes> {
  const { lab, engine, home, project, firewall } = input;
  const argv = ["run", "--engine", engine, "--network", lab.network, "--dns", lab.dns, "--", "node", "reach.mjs", ...ATTEMPTS.map(({ target }) => target)];
  const { stdout } = await execa(AGENTBOX, argv, { cwd: project, env: { HOME: home, AGENTBOX_FIREWALL: firewall }, stdin: "ignore", stderr: "inherit" });
  return new Map(outcomesSchema.parse(JSON.parse(stdout)).map(({ target, ...outcome }) => [target, outcome]));
}

function report(off: Outcomes, on: Outcomes): boolean {
  const judged = ATTEMPTS.map((attempt) => {
    const control = off.get(attempt.target)?.outcome ?? "not tried";
    const { outcome, ms } = on.get(attempt.target) ?? { outcome: "not tried", ms: 0 };
    // A time-out would be neither: only an answer counts.
    const right = control === "connected" && (attempt.allowed ? outcome === "connected" : outcome in WALLS);
    return { attempt, control, outcome, ms, right };
  });
  const rows = judged.map(({ attempt, control, outcome, ms, right }) => [
    attempt.what,
    control === "connected" ? "reached" : control,
    outcome === "connected" ? "reached" : "refused",
    WALLS[outcome] ?? "-",
    String(ms),
    right ? "as it should be" : `WRONG (${outcome})`,
  ]);
  const head = ["tried from inside the box", "firewall off", "firewall on", "by", "ms", ""];
  process.stdout.write(`\n${renderTable([head, ...rows])}\n\n`);
  const right = judged.every((row) => row.right);
  process.stdout.write(
    right
      ? `AgentBox works here. In a project of yours:\n\n  ${AGENTBOX} setup\n\nTo type only "agentbox": (cd ${ROOT} && npm link)\n`
      : "Something is not as it should be; agentbox doctor tells more.\n",
  );
  return right;
}

function say(text: string): void {
  process.stderr.write(`quickstart: ${text}\n`);
}

await runScript(async () => ((await main()) ? 0 : 1));
