import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runHostCommand } from "../../../cli/environment/host-command.ts";
import { readSiteCa } from "../../../cli/environment/site-ca.ts";
import { makeDirectory } from "./box.ts";

let place: string;
let project: string;
let site: string;
let key: string;
const root = rootCertificates[0] ?? "";

beforeAll(async () => {
  place = makeDirectory();
  project = join(place, "project");
  mkdirSync(project);
  const make = async (name: string, days: string) => {
    const [keyFile, file] = [join(place, `${name}.key`), join(place, `${name}.pem`)];
    const subject = ["-subj", `/CN=${name} authority`, "-days", days];
    await runHostCommand(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", keyFile, "-out", file, ...subject]);
    return { keyFile, file };
  };
  ({ file: site, keyFile: key } = await make("site", "30"));
  const { stdout } = await runHostCommand(["cat", site]);
  writeFileSync(join(place, "bundle.pem"), `# roots\n${root}\n${stdout}\n${stdout}`);
  writeFileSync(join(place, "public.pem"), root);
  writeFileSync(join(place, "both.pem"), stdout + (await runHostCommand(["cat", key])).stdout);
  writeFileSync(join(place, "text.pem"), "hello");
  writeFileSync(join(place, "broken.pem"), `-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n${stdout}`);
  writeFileSync(join(project, "own.pem"), stdout);
  symlinkSync(site, join(project, "link.pem"));
});
afterAll(() => rmSync(place, { recursive: true, force: true }));

const read = (caFile: string | null, hostEnv: NodeJS.ProcessEnv = {}) => readSiteCa({ caFile, hostEnv, cwd: place, writableRoots: [project] });

test("a bundle gives the site's own certificates, once, without the public ones", () => {
  const { ca, notices } = read("bundle.pem");
  expect(ca).toMatchObject({ file: join(place, "bundle.pem"), source: "--ca-file", certificates: [expect.stringMatching(/^-----BEGIN CERTIFICATE-----\n[^]*-----END CERTIFICATE-----\n$/)] });
  expect(notices).toHaveLength(1);
});

test("the option wins over AGENTBOX_CA_FILE, that over what the host's programs use", () => {
  const hostEnv = { AGENTBOX_CA_FILE: site, NODE_EXTRA_CA_CERTS: join(place, "bundle.pem"), SSL_CERT_FILE: site };
  expect(read(site, hostEnv).ca?.source).toBe("--ca-file");
  expect(read(null, hostEnv).ca?.source).toBe("AGENTBOX_CA_FILE");
  expect(read(null, { ...hostEnv, AGENTBOX_CA_FILE: "" }).ca?.source).toBe("NODE_EXTRA_CA_CERTS");
  expect(read(null, { SSL_CERT_FILE: site }).ca?.source).toBe("SSL_CERT_FILE");
  expect(read(null)).toEqual({ ca: null, notices: [] });
});

test("an authority that the host's distribution ships is no site authority", () => {
  const store = join(place, "store/mozilla");
  mkdirSync(store, { recursive: true });
  symlinkSync("../bundle.pem", join(place, "store/link.crt"));
  const query = { caFile: null, hostEnv: { SSL_CERT_FILE: join(place, "bundle.pem") }, cwd: place, writableRoots: [] };
  expect(readSiteCa({ ...query, stores: [join(place, "store"), "/nonexistent"] }).ca?.certificates).toHaveLength(1);
  writeFileSync(join(store, "retired.crt"), readFileSync(site));
  expect(readSiteCa({ ...query, stores: [join(place, "store")] })).toEqual({ ca: null, notices: [] });
});

test("a host's bundle of public authorities only is no site authority", () => {
  expect(read(null, { SSL_CERT_FILE: join(place, "public.pem") })).toEqual({ ca: null, notices: [] });
});

const refused: [string, string, RegExp][] = [
  ["does not exist", "missing.pem", /does not exist/],
  ["is a directory", ".", /not a plain file/],
  ["holds no certificate", "text.pem", /holds no certificate/],
  ["holds a private key", "both.pem", /holds a private key/],
  ["holds a broken certificate", "broken.pem", /certificate 1 cannot be read/],
  ["lies in the project", "project/own.pem", /where the agent may write/],
  ["is reached by a link in the project", "project/link.pem", /where the agent may write/],
];
test.each(refused)("a file that %s is refused when asked for, and left out with a notice when found", (_name, file, message) => {
  expect(() => read(file)).toThrow(message);
  expect(() => read(null, { AGENTBOX_CA_FILE: join(place, file) })).toThrow(message);
  expect(read(null, { NODE_EXTRA_CA_CERTS: join(place, file) }).notices.join("\n")).toMatch(message);
});

test("what lies in the project is not used when it is only found", () => {
  expect(read(null, { NODE_EXTRA_CA_CERTS: join(project, "own.pem"), SSL_CERT_FILE: join(place, "both.pem") }).ca).toBeNull();
});
