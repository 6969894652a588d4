import { once } from "node:events";
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import { join } from "node:path";
import { callbackify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createAuthority, createIssuer } from "../../../lab/certificates.ts";
import { findFreePort } from "./free-port.ts";
import { curl, ProxyHome } from "./proxy-process.ts";

let origin: Server;
let port = 0;
let place = "";
let siteCa = "";

beforeAll(async () => {
  const authority = await createAuthority();
  siteCa = authority.certificate;
  const issuer = await createIssuer(authority);
  port = await findFreePort();
  place = `localhost:${port}`;
  origin = createServer({ SNICallback: callbackify(issuer.contextFor) }, (request, response) => {
    request.resume().on("end", () => response.end(`origin ${request.method} ${request.url}\n`));
  }).listen(port, "127.0.0.1");
  await once(origin, "listening");
});

afterAll(() => {
  origin.closeAllConnections();
  origin.close();
});

const MITM = "allow_local_binding = true\n\n[network_proxy.mitm]\nenabled = true\n";

/** Starts with the authority of the test's servers as the site's. */
async function start(home: ProxyHome) {
  const ca = join(home.home, "site-ca.pem");
  writeFileSync(ca, siteCa);
  return await home.start(["--config", home.config], { env: { AGENTBOX_CA_FILE: ca } });
}

const through = ({ ports }: ProxyHome, bundle: string): string[] => ["-x", `http://127.0.0.1:${ports.http}`, "--cacert", bundle];

test("a site's proxy that speaks TLS is verified by the site's own authority", async () => {
  using home = await ProxyHome.make();
  const text = home.render({ allowed: ["http://outside.invalid"], more: `upstream_proxy = "https://${place}"` });
  home.write(text);
  const http = ["-x", `http://127.0.0.1:${home.ports.http}`];
  {
    await using _proxy = await start(home);
    expect(await curl(...http, "http://outside.invalid/x")).toBe("200 origin GET http://outside.invalid/x");
  }
  await using _proxy = await home.start();
  expect(await curl(...http, "http://outside.invalid/x")).toMatch(/^502 /);
});

describe("a stand-alone proxy that opens TLS", () => {
  test("makes its authority beside the file, names a bundle that programs trust, and judges methods in limited mode", async () => {
    using home = await ProxyHome.make();
    home.write({ allowed: [place], more: 'mode = "limited"', rest: MITM });
    await using proxy = await start(home);
    expect(proxy.stderr).not.toContain("the key of the authority");
    const key = join(home.home, "network_proxy/mitm/ca.key");
    const certificate = join(home.home, "network_proxy/mitm/ca.pem");
    expect([statSync(key).mode & 0o777, statSync(certificate).mode & 0o777]).toEqual([0o600, 0o644]);
    const bundle = /export SSL_CERT_FILE='(?<file>[^']+)'/.exec(proxy.stdout)?.groups?.["file"] ?? "";
    expect(proxy.stdout).toContain(`export NODE_EXTRA_CA_CERTS='${bundle}'`);
    expect(readFileSync(bundle, "utf8")).toContain(readFileSync(certificate, "utf8").trim().split("\n")[1]);
    expect(await curl(...through(home, bundle), `https://${place}/x`)).toBe("200 origin GET /x");
    expect(await curl("-X", "POST", ...through(home, bundle), `https://${place}/x`)).toMatch(/^403 .*"reason":"method_not_allowed"/);
    expect(await curl("-x", `http://127.0.0.1:${home.ports.http}`, "--cacert", "/etc/ssl/certs/ca-certificates.crt", `https://${place}/x`)).toBe("000 ");
    const log = home.readLog();
    expect(log).toContainEqual(expect.objectContaining({ event: "ca-made" }));
    expect(log).toContainEqual(expect.objectContaining({ event: "certificate-issued", detail: expect.stringMatching(/^localhost, /) }));
    expect(JSON.stringify(log)).not.toContain("PRIVATE");
  });

  test("warns of a key that the agents of a project could read", async () => {
    using home = await ProxyHome.make();
    home.write({ allowed: [place], rest: MITM }, join(home.project, "proxy.toml"));
    await using proxy = await home.start(["--config", "proxy.toml"], { cwd: home.project });
    expect(proxy.stderr).toMatch(/the key of the authority lies in the project, where the agents of its boxes can read it/);
  });

  test("uses the authority that is there, and does not start with a key that others can read", async () => {
    using home = await ProxyHome.make();
    home.write({ allowed: [place], rest: MITM });
    const certificate = join(home.home, "network_proxy/mitm/ca.pem");
    await (await start(home)).end();
    const made = readFileSync(certificate, "utf8");
    await (await start(home)).end();
    expect(readFileSync(certificate, "utf8")).toBe(made);
    chmodSync(join(home.home, "network_proxy/mitm/ca.key"), 0o644);
    expect(await home.run(["proxy", "--config", home.config])).toMatchObject({ code: 78, stderr: expect.stringMatching(/ca\.key can be read by others \(mode 644\).*chmod 600/) });
    // Nothing was left behind by the start that failed.
    chmodSync(join(home.home, "network_proxy/mitm/ca.key"), 0o600);
    await using _proxy = await start(home);
  });
});
