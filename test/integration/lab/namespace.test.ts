import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startNamespaceLab, type NamespaceLab } from "../../lab/namespace.ts";
import { syntheticName } from "../../lab/zone.ts";

describe.skipIf(process.getuid?.() !== 0)("lab in namespaces (needs root)", { timeout: 120_000 }, () => {
  let lab: NamespaceLab;
  let folder: string;

  beforeAll(async () => {
    lab = await startNamespaceLab({ names: ["extra.test"] });
    folder = await mkdtemp(join(tmpdir(), "lab-test-"));
  });
  afterEach(() => lab.control.reset());
  afterAll(async () => {
    await lab.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const output = async (...argv: string[]) => {
    const result = await lab.exec(argv);
    expect(result).toMatchObject({ exitCode: 0 });
    return result.stdout.trim();
  };
  const addressesOf = async (name: string) => (await output("getent", "ahosts", name)).split("\n").map((line) => line.split(" ")[0]);

  it.each(["-4", "-6"])("verifies HTTPS against the lab's CA over curl %s", async (family) => {
    const seen: unknown = JSON.parse(await output("curl", "-sS", family, "https://extra.test/path"));
    expect(seen).toMatchObject({ lab: true, sni: "extra.test", host: "extra.test", path: "/path" });
    expect(await lab.control.requests({ host: "extra.test" })).toMatchObject([{ kind: "https", client: family === "-4" ? lab.addresses.v4 : lab.addresses.v6 }]);
  });

  it("fails HTTPS without the lab's CA", async () => {
    const { exitCode } = await lab.exec(["curl", "-sS", "https://github.com/"], { env: { CURL_CA_BUNDLE: "/dev/null", SSL_CERT_FILE: "/dev/null" } });
    expect([60, 77]).toContain(exitCode);
  });

  it.each([
    ["an address literal", "https://8.8.8.8/"],
    ["an IPv6 literal", "https://[2001:4860:4860::8888]/"],
    ["another port of an allowed host", "https://github.com:8443/"],
    ["plain HTTP", "http://example.com/"],
    ["the metadata address", "http://169.254.169.254/latest/meta-data/"],
    ["a private address", "http://192.168.1.1/"],
    ["a certificate of many packets", "https://large-cert.lab-names.example/"],
    ["a synthetic name", `https://${syntheticName(777)}/`],
  ])("answers %s", async (_, url) => {
    expect(await output("curl", "-sS", "-m", "5", url)).toContain("lab");
  });

  it("answers the canary on port 9 and UDP on a named host", async () => {
    const probe = `
      const net = require("node:net"), udp = require("node:dgram").createSocket("udp4");
      net.connect(9, "198.51.100.1").on("data", (data) => { console.log("tcp " + data); udp.connect(443, "140.82.112.3", () => udp.send("quic")); }).write("canary");
      udp.on("message", (data) => { console.log("udp " + data); process.exit(0); });`;
    expect((await output("node", "-e", probe)).split("\n")).toEqual(["tcp canary", "udp quic"]);
    expect(await lab.control.connections({ port: 443 })).toMatchObject([{ transport: "udp", address: "140.82.112.3" }]);
  });

  it("answers as the foreign resolvers too, over UDP, TCP and IPv6, and records who was asked", async () => {
    const script = `
      const { Resolver } = require("node:dns").promises;
      (async () => { for (const server of ["8.8.8.8", "[2606:4700:4700::1111]"]) {
        const resolver = new Resolver(); resolver.setServers([server]); console.log((await resolver.resolve4("GitHub.com"))[0]);
      } })();`;
    expect((await output("node", "-e", script)).split("\n")).toEqual(["140.82.112.3", "140.82.112.3"]);
    const asked = await lab.control.questions({ name: "github.com" });
    expect(asked.map(({ server }) => server)).toEqual(["8.8.8.8", "2606:4700:4700::1111"]);
  });

  it("says NXDOMAIN at once for a name nobody listed", async () => {
    expect(await lab.exec(["getent", "ahosts", "unlisted.test"])).toMatchObject({ exitCode: 2, stdout: "" });
    expect((await lab.control.questions({ name: "unlisted.test" })).map(({ type }) => type).toSorted()).toEqual(["A", "AAAA"]);
  });

  it("delays, lies about addresses and fails when told to, and stops after a reset", async () => {
    await lab.control.setDns({ "github.com": { a: ["10.9.9.9"], aaaa: [], delayMs: 120 } });
    const before = performance.now();
    expect(await addressesOf("github.com")).toContain("10.9.9.9");
    expect(performance.now() - before).toBeGreaterThan(115);
    await lab.control.setDns({ "github.com": { rcode: "SERVFAIL" } });
    expect((await lab.exec(["getent", "ahosts", "github.com"])).exitCode).toBe(2);
    await lab.control.reset();
    expect(await addressesOf("github.com")).toContain("140.82.112.3");
  });

  it("rotates addresses", async () => {
    await lab.control.setDns({ "extra.test": { a: ["93.184.219.1", "93.184.219.2"], aaaa: [], rotate: "one" } });
    const answers = [await addressesOf("extra.test"), await addressesOf("extra.test")].map((list) => list[0]);
    expect(answers).toEqual(["93.184.219.1", "93.184.219.2"]);
  });

  it("resets connections where told to, and drops them at the silent host", async () => {
    await lab.control.setHosts({ "140.82.112.3": { tcp: "reset" } });
    // The reset follows the accept so closely that curl may see it as the end of its connect (7) or of TLS (35).
    const { exitCode, stderr } = await lab.exec(["curl", "-4sS", "https://github.com/"]);
    expect([7, 35]).toContain(exitCode);
    expect(stderr).not.toContain("timed out");
    expect(await lab.control.connections({ address: "140.82.112.3" })).not.toEqual([]);
    expect((await lab.exec(["curl", "-4sS", "-m", "1", "https://silent.lab-names.example/"])).exitCode).toBe(28);
    expect(await lab.control.connections({ address: "93.184.223.66" })).toEqual([]);
  });

  it.each([
    ["HTTPS", "https://github.com/owner/repo.git"],
    ["SSH", "git@github.com:owner/repo.git"],
    ["SSH on port 443", "ssh://git@ssh.github.com:443/owner/repo.git"],
  ])("clones and pushes with git over %s", async (way, url) => {
    const clone = join(folder, way.replaceAll(" ", "-"));
    await output("git", "clone", "--quiet", url, clone);
    const author = ["-c", "user.name=lab", "-c", "user.email=lab@lab-names.example"];
    await output("git", "-C", clone, ...author, "commit", "--quiet", "--allow-empty", "-m", way);
    await output("git", "-C", clone, "push", "--quiet", "origin", "main");
    expect(await output("git", "ls-remote", url, "main")).toContain(await output("git", "-C", clone, "rev-parse", "HEAD"));
  });

  it("records the SSH command and gives no shell", async () => {
    const { exitCode, stderr } = await lab.exec(["ssh", "-i", lab.sshKeyFile, "-o", "BatchMode=yes", "-o", `UserKnownHostsFile=${lab.knownHostsFile}`, "git@github.com"]);
    expect({ exitCode, refused: stderr.includes("no shell") }).toEqual({ exitCode: 1, refused: true });
    expect((await lab.control.requests()).map(({ method }) => method)).toContain("AUTH");
  });

  it("serves npm a package with a dependency", async () => {
    expect(await output("npm", "view", "lab-hello", "version", `--cache=${folder}/npm`)).toBe("1.1.0");
    await output("npm", "install", "--no-fund", "--no-audit", `--cache=${folder}/npm`, `--prefix=${folder}/app`, "lab-hello");
    expect(await output(`${folder}/app/node_modules/.bin/lab-hello`)).toBe("hello lab");
  });

  it("serves pip a wheel", async () => {
    await output("python3", "-m", "pip", "install", "--quiet", "--isolated", "--no-cache-dir", "--disable-pip-version-check", "--target", `${folder}/python`, "lab-hello");
    expect(await output("python3", "-c", `import sys; sys.path.insert(0, "${folder}/python"); import lab_hello; print(lab_hello.greet())`)).toBe("hello from the lab");
  });

  it("serves apt an archive on port 80", async () => {
    const settings = ["Dir=/", `Dir::State=${folder}/apt`, `Dir::Cache=${folder}/apt`, `Dir::Etc::SourceList=${folder}/apt/sources.list`, "Dir::Etc::SourceParts=/dev/null", "APT::Sandbox::User=root"];
    const options = settings.flatMap((setting) => ["-o", setting]);
    await mkdir(`${folder}/apt`);
    await writeFile(`${folder}/apt/sources.list`, "deb [trusted=yes] http://archive.lab-names.example/debian bookworm main\n");
    await output("apt-get", ...options, "update", "-qq");
    expect((await lab.exec(["apt-get", ...options, "download", "lab-hello"], { cwd: folder })).exitCode).toBe(0);
    expect(await output("dpkg-deb", "--fsys-tarfile", `${folder}/lab-hello_1.0_all.deb`)).toContain("hello from the lab");
  });

  it("answers DNS over TLS and over HTTPS", async () => {
    const script = `
      const packet = require(${JSON.stringify(createRequire(import.meta.url).resolve("dns-packet"))});
      const query = packet.encode({ type: "query", id: 1, flags: packet.RECURSION_DESIRED, questions: [{ type: "A", name: "github.com" }] });
      (async () => {
        const headers = { "content-type": "application/dns-message" };
        const answer = await fetch("https://cloudflare-dns.com/dns-query", { method: "POST", headers, body: query });
        console.log(packet.decode(Buffer.from(await answer.arrayBuffer())).answers[0].data);
        const socket = require("node:tls").connect(853, "1.1.1.1", { servername: "one.one.one.one" });
        socket.write(packet.streamEncode(packet.decode(query)));
        socket.once("data", (data) => { console.log(packet.streamDecode(data).answers[0].data); socket.end(); });
      })();`;
    expect((await output("node", "-e", script)).split("\n")).toEqual(["140.82.112.3", "140.82.112.3"]);
    expect((await lab.control.questions({ name: "github.com" })).map(({ transport }) => transport)).toEqual(["https", "tls"]);
  });

  it("leaves no way out: the box's only route leads to the lab, and the lab has none", async () => {
    expect(await output("ip", "route", "show", "default")).toBe(`default via ${lab.gateway.v4} dev eth0`);
    for (const family of ["-4", "-6"]) {
      const { stdout } = await lab.execInLab(["ip", family, "route", "show", "default"]);
      expect(stdout.trim()).toBe("");
    }
    const links = await lab.execInLab(["ip", "-brief", "link"]);
    expect(links.stdout.trim().split("\n").map((line) => line.split(/[@ ]/)[0])).toEqual(["lo", "br0", "box0"]);
  });

  it("gives sibling boxes one network, and a second lab the same addresses without a clash", async () => {
    const sibling = await lab.addBox();
    await using other = await startNamespaceLab();
    expect(other.addresses).toEqual(lab.addresses);
    expect((await sibling.exec(["curl", "-sS", "https://github.com/"])).exitCode).toBe(0);
    expect((await other.exec(["curl", "-sS", "https://github.com/"])).exitCode).toBe(0);
    expect(await other.control.requests()).toHaveLength(1);
    expect((await lab.control.requests()).map(({ client }) => client)).not.toContain(lab.addresses.v4);
  });
});
