import { describe, expect, it } from "vitest";
import type { PolicyDocument } from "../../../policy/policy-document.ts";
import { makeAuthority } from "../../../proxy/interception/authority.ts";
import { startNamespaceLab } from "../../lab/namespace.ts";
import { NAME_WALL, runBox } from "./netns-box.ts";

// What keeps a box with the name wall from starting, once its rules stand: a proxy that does not do its work, and a port that it
// cannot have.

const NAME = { allowed: ["github.com"], critical: [], standIn: true as const, spec: { policy: NAME_WALL } };

describe("a proxy that does not refuse what it should (a stand-in)", () => {
  it.each([
    ["mute", "was neither refused nor let through in time"],
    ["resets", "met ECONNRESET"],
  ] as const)("and is %s keeps the box from starting", async (standIn, said) => {
    await using lab = await startNamespaceLab();
    const run = await runBox(lab, { ...NAME, standIn, command: ["echo", "agent"] });
    expect(run).toMatchObject({ code: 70, stdout: "" });
    expect(run.events.at(-1)).toMatchObject({ event: "failed", step: "validation", text: expect.stringContaining(`the name agentbox-probe.example.com, told to 198.51.100.1 port 443, ${said}`) });
  });

  it("is no reason to worry in report mode, which lets every name through", async () => {
    await using lab = await startNamespaceLab();
    expect(await runBox(lab, { ...NAME, spec: { policy: { ...NAME_WALL, report: true } }, standIn: "mute" })).toMatchObject({ code: 0 });
  });
});

function intercepted(passthrough: readonly string[]): PolicyDocument {
  return { ...NAME_WALL, nameWall: { ...NAME_WALL.nameWall, intercept: true, passthrough: passthrough.map((text) => ({ text })) } };
}

it.each([
  ["the HTTP proxy", { httpPort: 53 }, "choose another port with proxy_url in [network_proxy]"],
  ["the SOCKS proxy", { socksPort: 53 }, "choose another port with socks_url in [network_proxy], or enable_socks5 = false"],
])("a port of %s that is taken (by the box's own resolver) keeps the box from starting, with the remedy", async (_case, ports, fix) => {
  await using lab = await startNamespaceLab();
  const run = await runBox(lab, { ...NAME, spec: { policy: { ...NAME_WALL, nameWall: { ...NAME_WALL.nameWall, ...ports } } }, command: ["echo", "agent"] });
  expect(run).toMatchObject({ code: 70, stdout: "" });
  expect(run.events.at(-1)).toMatchObject({ event: "failed", step: "resolver", text: expect.stringMatching(/^the box's proxy cannot have (127\.0\.0\.1|::1) port 53: EADDRINUSE/) });
  expect(run.events.at(-1)).toMatchObject({ text: expect.stringContaining(`fix: ${fix}`) });
});

describe("a start whose TLS is opened", () => {
  const issuer = ["sh", "-c", "curl -sSv --cacert /run/agentbox/ca-bundle.crt -o /dev/null https://github.com/ 2>&1 | grep issuer"];

  it.each([
    ["its own authority", [], /AgentBox interception authority/],
    ["the service's own, where it is passed through", ["github.com"], /AgentBox lab CA/],
  ])("reaches its critical services by certificates of %s", async (_case, passthrough, said) => {
    await using lab = await startNamespaceLab();
    const run = await runBox(lab, { allowed: ["github.com"], critical: ["github.com"], authority: await makeAuthority(), spec: { policy: intercepted(passthrough) }, command: issuer });
    expect(run).toMatchObject({ code: 0, stdout: expect.stringMatching(said) });
  });

  it("is refused where the service behind the proxy does not answer, although the proxy does", async () => {
    await using lab = await startNamespaceLab();
    await lab.control.setHosts({ "140.82.112.3": { tcp: "reset" }, "2606:50c0:8000::3": { tcp: "reset" } });
    const run = await runBox(lab, { allowed: ["github.com"], critical: ["github.com"], authority: await makeAuthority(), spec: { policy: intercepted([]) }, command: ["echo", "agent"] });
    expect(run).toMatchObject({ code: 69, stdout: "" });
    expect(run.events.at(-1)).toMatchObject({ event: "failed", step: "validation", text: expect.stringMatching(/^github\.com:443 does not answer: (?!no answer within)/) });
  });
});
