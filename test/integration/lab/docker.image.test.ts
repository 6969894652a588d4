import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand } from "../../lab/command.ts";
import { startDockerLab, type DockerLab } from "../../lab/docker.ts";

const engine = process.env["AGENTBOX_TEST_ENGINE"] === "podman" ? "podman" : "docker";
// Any image with Node 24, iproute2, git and curl; the test runner names AgentBox's own.
const image = process.env["AGENTBOX_TEST_IMAGE"] ?? "";

const runEngine = (...args: string[]) => runCommand([engine, ...args], { env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "/" } });

describe.skipIf(image === "")(`lab for ${engine} boxes (needs AGENTBOX_TEST_IMAGE)`, { timeout: 120_000 }, () => {
  let lab: DockerLab;

  beforeAll(async () => {
    lab = await startDockerLab({ engine, image });
  }, 60_000);
  afterAll(() => lab.stop());

  const box = (...argv: string[]) => {
    const [file = "true", ...args] = argv;
    const trust = ["-v", `${lab.caFile}:/lab-ca.pem:ro`, "-e", "CURL_CA_BUNDLE=/lab-ca.pem", "-e", "GIT_SSL_CAINFO=/lab-ca.pem"];
    return runEngine("run", "--rm", ...(engine === "podman" ? ["--ulimit", "nofile=8192:8192", "--ulimit", "nproc=4096:4096"] : []), "--network", lab.network, "--dns", lab.dns, ...trust, "--entrypoint", file, image, ...args);
  };

  it.each(["-4", "-6"])("reaches the lab's internet from a box over curl %s", async (family) => {
    await lab.control.reset();
    expect(await box("curl", "-sS", family, "-m", "5", "https://github.com/")).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('"sni":"github.com"') });
    expect(await lab.control.requests({ host: "github.com" })).toHaveLength(1);
  });

  it("hears what is asked on a box's behalf", async () => {
    await lab.control.reset();
    await box("getent", "ahosts", "never-listed.test");
    expect((await lab.control.questions({ name: "never-listed.test" })).length).toBeGreaterThan(0);
  });

  it("answers foreign resolvers' addresses and the metadata address", async () => {
    expect(await box("curl", "-sS", "-m", "5", "https://1.1.1.1/", "http://169.254.169.254/latest/meta-data/", "-k")).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("lab-metadata-secret") });
  });

  it("clones with git over HTTPS", async () => {
    expect(await box("git", "clone", "--quiet", "https://github.com/owner/repo", "/tmp/clone")).toMatchObject({ exitCode: 0 });
  });

  it("makes itself the boxes' gateway for both families and has no way out itself", async () => {
    const routes = await box("sh", "-c", "ip -4 route show default; ip -6 route show default");
    expect(routes.stdout).toContain(`default via ${lab.gateway} dev eth0`);
    expect(routes.stdout).toContain(`default via ${lab.gateway6} dev eth0`);
    const own = await runEngine("exec", lab.container, "sh", "-c", "ip -4 route show default; ip -6 route show default; cat /proc/sys/net/ipv4/ip_forward");
    expect(own.stdout.trim()).toBe("0");
  });

  it("runs beside a second lab and removes everything when it stops", async () => {
    const other = await startDockerLab({ engine, image });
    expect(other.dns).not.toBe(lab.dns);
    await other.stop();
    const left = await runEngine("network", "ls", "--filter", `name=${other.network}`, "--quiet");
    expect(left.stdout.trim()).toBe("");
  });
});
