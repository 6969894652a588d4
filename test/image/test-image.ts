import { spawn } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { rootCertificates } from "node:tls";
import { bootEventSchema } from "../../policy/boot-event.ts";
import { openIdentity } from "../lab/state-directory.ts";

/** The image that the tests' boxes run, and what belongs to it. */
export type TestImage = {
  image: string;
  /** HOME of the command line under test: it remembers the image's agents and certificates. */
  home: string;
  /** PEM file with the lab's authority and this machine's own. */
  caFile: string;
};

const ROOT = join(import.meta.dirname, "../..");
const GIT_CONFIG = "[user]\n\tname = Box Tester\n\temail = tester@example.com\n[init]\n\tdefaultBranch = main\n";

/** Makes sure, through the real command line, that the image is built; a second call with the same files only asks. */
export async function prepareTestImage({ agents }: { agents: readonly string[] }): Promise<TestImage> {
  const directory = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "agentbox-test");
  const home = join(directory, "home");
  const caFile = join(directory, "ca.pem");
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, ".gitconfig"), GIT_CONFIG);
  writeFileSync(caFile, await collectAuthorities());
  const project = mkdtempSync(join(tmpdir(), "agentbox-test-image-"));
  try {
    const image = await startOnce({ project, home, argv: ["run", "--agents", agents.join(" "), "--ca-file", caFile, "--", "true"] });
    return { image, home, caFile };
  } finally {
    rmSync(project, { recursive: true, force: true });
  }
}

/** Boxes must believe the lab; the build must believe whatever gateway stands between it and the package archives. */
async function collectAuthorities(): Promise<string> {
  const lab = readFileSync((await openIdentity()).caFile, "utf8");
  const site = [process.env["NODE_EXTRA_CA_CERTS"], process.env["SSL_CERT_FILE"]].find((file) => file !== undefined && existsSync(file));
  return [lab, ...(site === undefined ? [] : readOwnAuthorities(site))].join("\n");
}

/** A bundle that stands for the whole system's holds public roots, too, some of which have run out. */
function readOwnAuthorities(bundle: string): string[] {
  const known = new Set(rootCertificates.map((pem) => new X509Certificate(pem).fingerprint256));
  const blocks = readFileSync(bundle, "utf8").match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  const certificates = blocks.map((pem) => new X509Certificate(pem));
  return certificates.filter(({ fingerprint256, validToDate }) => !known.has(fingerprint256) && validToDate.getTime() > Date.now()).map(String);
}

/** Starts a box that does nothing and reads from its log which image it was. Its output goes to stderr. */
async function startOnce({ project, home, argv }: { project: string; home: string; argv: readonly string[] }): Promise<string> {
  const env = { ...process.env, HOME: home, AGENTBOX_LOG: "json", AGENTBOX_FIREWALL: "0" };
  const child = spawn(join(ROOT, "agentbox"), argv, { cwd: project, env, stdio: ["ignore", "ignore", "pipe"] });
  const lines: string[] = [];
  const ended = new Promise<number | null>((resolve, reject) => child.once("error", reject).once("close", resolve));
  for await (const line of createInterface({ input: child.stderr })) lines.push(line);
  const code = await ended;
  const image = lines.flatMap(readImageTag)[0];
  if (code !== 0 || image === undefined) throw new Error(`the image of the tests could not be made (exit code ${code}):\n${lines.join("\n")}`);
  return image;
}

function readImageTag(line: string): string[] {
  if (!line.startsWith("{")) return [];
  const event = bootEventSchema.safeParse(JSON.parse(line)).data;
  return event?.event === "done" && event.step === "image" ? event.detail.split(",").slice(0, 1) : [];
}

/** What the tests in real boxes need of an image. */
export const TEST_AGENTS: readonly string[] = ["claude", "codex"];

if (import.meta.main) process.stdout.write(`${JSON.stringify(await prepareTestImage({ agents: TEST_AGENTS }))}\n`);
