import { spawn, spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ConfigError, OutputError } from "../../../../policy/errors.ts";
import { makeAuthority } from "../../../../proxy/interception/authority.ts";
import { type AuthorityPaths, openAuthority } from "../../../../proxy/interception/ca-files.ts";

let dir = "";
let paths: AuthorityPaths = { certPath: "", keyPath: "" };

beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), "agentbox-ca-"));
  paths = { certPath: path.join(dir, "mitm/ca.pem"), keyPath: path.join(dir, "mitm/ca.key") };
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const modeOf = (file: string): string => (statSync(file).mode & 0o7777).toString(8);
const isRoot = process.getuid?.() === 0;

/** Starts a process that opens the authority at these paths, and gives what it tells of it. */
async function openElsewhere(): Promise<{ made: boolean; fingerprint: string }> {
  const program = `
    import { X509Certificate } from "node:crypto";
    import { openAuthority } from ${JSON.stringify(path.resolve("proxy/interception/ca-files.ts"))};
    const { authority, made } = await openAuthority(${JSON.stringify(paths)});
    console.log(JSON.stringify({ made, fingerprint: new X509Certificate(authority.certPem).fingerprint256 }));`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  const [said] = await Promise.all([text(child.stdout), once(child, "close")]);
  const told: unknown = JSON.parse(said);
  if (typeof told !== "object" || told === null || !("made" in told) || !("fingerprint" in told)) throw new Error(said);
  return { made: told.made === true, fingerprint: String(told.fingerprint) };
}

describe("the authority of the stand-alone proxy", () => {
  test("is made at first use, its key for its owner alone, and read from then on", async () => {
    const before = process.umask(0o077);
    const first = await openAuthority(paths).finally(() => process.umask(before));
    expect(first.made).toBe(true);
    expect([modeOf(paths.keyPath), modeOf(paths.certPath)]).toEqual(["600", "644"]);
    expect(readdirSync(path.dirname(paths.keyPath)).toSorted()).toEqual([".gitignore", "ca.key", "ca.pem"]);
    expect(await openAuthority(paths)).toEqual({ authority: first.authority, made: false });
    expect(new X509Certificate(first.authority.certPem).validToDate.getTime()).toBeGreaterThan(Date.now() + 9 * 365 * 86_400_000);
  });

  test("stays out of repositories: git sees nothing of it", async () => {
    spawnSync("git", ["init", "-q", dir]);
    writeFileSync(path.join(dir, "seen"), "");
    await openAuthority(paths);
    const status = spawnSync("git", ["-C", dir, "status", "--porcelain", "--untracked-files=all"]);
    expect(status.stdout.toString()).toBe("?? seen\n");
  });

  test("is one and the same for processes that start at once", async () => {
    const told = await Promise.all(Array.from({ length: 6 }, openElsewhere));
    expect(new Set(told.map(({ fingerprint }) => fingerprint)).size).toBe(1);
    expect(told.filter(({ made }) => made)).toHaveLength(1);
    expect(readdirSync(path.dirname(paths.keyPath)).toSorted()).toEqual([".gitignore", "ca.key", "ca.pem"]);
  });

  test("is waited for where another process has made the first file only", async () => {
    await openAuthority(paths);
    const kept = `${paths.certPath}.kept`;
    renameSync(paths.certPath, kept);
    setTimeout(() => linkSync(kept, paths.certPath), 300);
    expect((await openAuthority(paths)).made).toBe(false);
  });

  test("may be the owner's own, with an RSA key", async () => {
    mkdirSync(path.dirname(paths.keyPath));
    const made = spawnSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", paths.keyPath, "-out", paths.certPath, "-days", "30", "-subj", "/CN=own", "-addext", "basicConstraints=critical,CA:TRUE"]);
    expect(made.status).toBe(0);
    chmodSync(paths.keyPath, 0o600);
    expect((await openAuthority(paths)).made).toBe(false);
  });

  test("says what to do where its files cannot be made", async () => {
    writeFileSync(path.join(dir, "mitm"), "a file where the directory should be");
    await expect(openAuthority(paths)).rejects.toThrow(OutputError);
    await expect(openAuthority(paths)).rejects.toThrow(/cannot be made.*ca_cert_path/s);
  });
});

type Row = { what: string; spoil: () => void | Promise<void>; says: RegExp };

const openssl = (...args: string[]): void => {
  const { status, stderr } = spawnSync("openssl", args);
  if (status !== 0) throw new Error(stderr.toString());
};

const rows: readonly Row[] = [
  { what: "a key that others may read", spoil: () => chmodSync(paths.keyPath, 0o644), says: /can be read by others \(mode 644\).*chmod 600/s },
  { what: "a key that a group may read", spoil: () => chmodSync(paths.keyPath, 0o640), says: /can be read by others \(mode 640\)/ },
  { what: "a key that a group may write", spoil: () => chmodSync(paths.keyPath, 0o620), says: /can be read by others \(mode 620\)/ },
  { what: "a key that is a symbolic link", spoil: () => (renameSync(paths.keyPath, `${dir}/real`), symlinkSync(`${dir}/real`, paths.keyPath)), says: /ca\.key is a symbolic link/ },
  { what: "a key that is a dangling link, and no certificate", spoil: () => (rmSync(paths.keyPath), rmSync(paths.certPath), symlinkSync(`${dir}/nowhere`, paths.keyPath)), says: /ca\.key is there, but .*ca\.pem is not/ },
  { what: "a key that is a directory", spoil: () => (rmSync(paths.keyPath), mkdirSync(paths.keyPath)), says: /ca\.key is no regular file/ },
  { what: "a key that is a pipe", spoil: () => (rmSync(paths.keyPath), void spawnSync("mkfifo", ["-m", "600", paths.keyPath])), says: /ca\.key is no regular file/ },
  { what: "a certificate without its key", spoil: () => rmSync(paths.keyPath), says: /ca\.pem is there, but .*ca\.key is not/ },
  { what: "a key without its certificate", spoil: () => rmSync(paths.certPath), says: /ca\.key is there, but .*ca\.pem is not/ },
  { what: "a key of another certificate", spoil: async () => writeFileSync(paths.keyPath, (await makeAuthority()).keyPem), says: /is not the key of/ },
  { what: "an empty key", spoil: () => writeFileSync(paths.keyPath, ""), says: /holds no private key/ },
  { what: "a key with a passphrase", spoil: () => openssl("ec", "-in", paths.keyPath, "-aes256", "-passout", "pass:secret", "-out", paths.keyPath), says: /holds no private key without a passphrase/ },
  { what: "a certificate that is none", spoil: () => writeFileSync(paths.certPath, "nothing"), says: /holds no certificate/ },
  { what: "a certificate of no authority", spoil: () => openssl("req", "-x509", "-key", paths.keyPath, "-out", paths.certPath, "-days", "30", "-subj", "/CN=leaf", "-addext", "basicConstraints=critical,CA:FALSE"), says: /is not the certificate of an authority/ },
  { what: "a pair that has run out", spoil: async () => writePair(await makeAuthority(-0.1)), says: /ran out on/ },
  { what: "a key of a kind that signs nothing here", spoil: () => openssl("req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", paths.keyPath, "-out", paths.certPath, "-days", "30", "-subj", "/CN=own", "-addext", "basicConstraints=critical,CA:TRUE"), says: /is of a kind that is not supported/ },
];

const writePair = ({ certPem, keyPem }: { certPem: string; keyPem: string }): void => {
  writeFileSync(paths.certPath, certPem);
  writeFileSync(paths.keyPath, keyPem);
};

describe("refuses, and changes nothing:", () => {
  test.each(rows)("$what", async ({ spoil, says }) => {
    await openAuthority(paths);
    await spoil();
    const before = snapshot();
    const refused = await openAuthority(paths).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ConfigError);
    expect(String(refused)).toMatch(says);
    expect(String(refused)).not.toContain("PRIVATE KEY");
    expect(snapshot()).toEqual(before);
  });

  test.runIf(isRoot)("a key of another owner", async () => {
    await openAuthority(paths);
    chownSync(paths.keyPath, 12_345, 12_345);
    await expect(openAuthority(paths)).rejects.toThrow(/belongs to the user 12345/);
  });
});

const snapshot = (): unknown => {
  const folder = path.dirname(paths.keyPath);
  return readdirSync(folder).map((name) => [name, existsSync(path.join(folder, name)) && statSync(path.join(folder, name)).isFile() ? readFileSync(path.join(folder, name), "utf8") : "special"]);
};
