import { randomUUID } from "node:crypto";
import { chmod, link, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { ConfigError } from "../../policy/errors.ts";

const identitySchema = z.strictObject({
  certificate: z.string().startsWith("-----BEGIN CERTIFICATE"),
  key: z.string(),
  sshHostKey: z.string(),
  sshHostPublic: z.string(),
  sshClientKey: z.string(),
  sshClientPublic: z.string(),
});

/** The lab's lasting secrets and the files that clients are pointed at. */
export type LabIdentity = z.infer<typeof identitySchema> & {
  directory: string;
  /** The CA certificate in PEM. */
  caFile: string;
  /** A client key that the lab's SSH server accepts, mode 0600. */
  sshKeyFile: string;
  /** `known_hosts` with the lab's host key for every host. */
  knownHostsFile: string;
};

/** Where the lab keeps its certificate authority unless told otherwise. */
export function defaultStateDirectory(): string {
  return join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "agentbox-lab");
}

/**
 * Opens the lab's identity, made on first use, so that an image which trusts the CA stays good. Several
 * labs that start at once on an empty directory agree on one: only the first `link` succeeds.
 */
export async function openIdentity(directory: string = defaultStateDirectory()): Promise<LabIdentity> {
  const bundle = join(directory, "identity.json");
  const kept = (await readBundle(bundle)) ?? (await createBundle(directory, bundle));
  const files = { caFile: join(directory, "ca.pem"), sshKeyFile: join(directory, "client_ed25519"), knownHostsFile: join(directory, "known_hosts") };
  await replaceFile(files.caFile, kept.certificate, 0o644);
  await replaceFile(files.sshKeyFile, kept.sshClientKey, 0o600);
  await replaceFile(files.knownHostsFile, `* ${kept.sshHostPublic}\n`, 0o644);
  return { ...kept, directory, ...files };
}

/** Reads an identity that exists already, without writing anything: the lab's own half in a container. */
export async function readIdentity(directory: string): Promise<z.infer<typeof identitySchema>> {
  const kept = await readBundle(join(directory, "identity.json"));
  if (kept !== undefined) return kept;
  throw new ConfigError({ what: `the lab has no identity in ${directory}`, fix: "start the lab by its own command, which makes one" });
}

async function createBundle(directory: string, bundle: string): Promise<z.infer<typeof identitySchema>> {
  await mkdir(directory, { recursive: true, mode: 0o755 });
  // Loaded only here: every later start finds the identity and is 150 ms faster for it.
  const [{ createAuthority }, { default: ssh2 }] = await Promise.all([import("./certificates.ts"), import("ssh2")]);
  const host = ssh2.utils.generateKeyPairSync("ed25519");
  const client = ssh2.utils.generateKeyPairSync("ed25519", { comment: "agentbox-lab" });
  const identity = {
    ...(await createAuthority()),
    sshHostKey: host.private,
    sshHostPublic: host.public.trim(),
    sshClientKey: client.private,
    sshClientPublic: client.public.trim(),
  };
  const draft = join(directory, `.identity-${randomUUID()}`);
  await writeFile(draft, JSON.stringify(identity), { mode: 0o600 });
  await link(draft, bundle).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  await rm(draft, { force: true });
  return (await readBundle(bundle)) ?? identity;
}

async function readBundle(file: string): Promise<z.infer<typeof identitySchema> | undefined> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const parsed = identitySchema.safeParse(JSON.parse(text));
  if (parsed.success) return parsed.data;
  throw new ConfigError({ what: "the lab's identity is damaged", fix: "delete the file, the lab makes a new one", place: { file } });
}

async function replaceFile(file: string, content: string, mode: number): Promise<void> {
  const present = await readFile(file, "utf8").catch(() => undefined);
  if (present === content) return;
  const draft = `${file}.${randomUUID()}`;
  await writeFile(draft, content, { mode });
  await chmod(draft, mode);
  await rename(draft, file);
}
