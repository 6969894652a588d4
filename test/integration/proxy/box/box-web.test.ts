import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createServer as createTcpServer } from "node:net";
import { callbackify } from "node:util";
import type { Answer } from "dns-packet";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeAuthority } from "../../../../proxy/interception/authority.ts";
import { createAuthority, createIssuer } from "../../../lab/certificates.ts";
import { FakeUpstream, type Script } from "../fake-upstream.ts";
import { findFreePort } from "../standalone/free-port.ts";
import { openTunnel, readAll, untilClosed } from "../standalone/tunnel-client.ts";
import { allowing, type BoxWebProcess, startBoxWeb } from "./box-web-process.ts";

/** Where the servers of these tests are, and the resolver of the site. */
const ORIGIN = "127.0.88.1";
const RESOLVER = "127.0.88.53";

const servers: { close: () => unknown; closeAllConnections?: () => void }[] = [];
let upstream: FakeUpstream;
let originPort = 0;
let siteCa = "";

const addresses = (name: string, type: string): readonly Answer[] => {
  if (name === "six.example") return type === "AAAA" ? [{ type: "AAAA", name, ttl: 60, data: "::1" }] : [];
  return type === "A" ? [{ type: "A", name, ttl: 60, data: ORIGIN }] : [];
};
const honest: Script = ({ name, type }) => (name.toLowerCase() === "none.example" ? { rcode: 3 } : addresses(name.toLowerCase(), type));

async function listen(server: Server | ReturnType<typeof createTlsServer>, port: number, address: string): Promise<void> {
  server.listen(port, address);
  await once(server, "listening");
  servers.push(server);
}

function say(from: string): Server {
  return createServer((request, response) => response.end(`${from} ${request.headers.host} ${request.url}\n`));
}

beforeAll(async () => {
  upstream = await FakeUpstream.listen(RESOLVER, honest);
  originPort = await findFreePort(ORIGIN);
  await listen(say("origin"), originPort, ORIGIN);
  await listen(say("port 80"), 80, ORIGIN);
  await listen(say("six"), originPort, "::1");
  const site = await createAuthority();
  siteCa = site.certificate;
  const { contextFor } = await createIssuer(site);
  const tls = createTlsServer({ SNICallback: callbackify(contextFor) }, (request, response) => response.end(`port 443 ${request.headers.host}\n`));
  await listen(tls, 443, ORIGIN);
});

afterAll(async () => {
  for (const server of servers) {
    server.closeAllConnections?.();
    server.close();
  }
  await upstream[Symbol.asyncDispose]();
});

/** What curl printed, the status in front. */
async function curl(...args: string[]): Promise<string> {
  return await new Promise((resolve) => {
    execFile("curl", ["-s", "-m", "20", "-w", "\n%{http_code}", ...args], { env: {} }, (_error, stdout) => {
      const cut = stdout.lastIndexOf("\n");
      resolve(`${stdout.slice(cut + 1)} ${stdout.slice(0, cut).trim()}`);
    });
  });
}

function through({ ports }: BoxWebProcess): { http: string[]; socks: string[] } {
  return { http: ["-x", `http://127.0.0.1:${ports.http}`], socks: ["-x", `socks5h://127.0.0.1:${ports.socks}`] };
}

const open = (hosts: readonly string[], more: Parameters<typeof allowing>[1] = {}) => startBoxWeb({ document: allowing(hosts, more), upstreams: [RESOLVER] });

describe("the web of a box", () => {
  test.each(["http", "socks"] as const)("%s: an allowed name is found by the box's resolver, opened in the kernel, and reached", async (kind) => {
    await using box = await open([`a.example:${originPort}`]);
    expect(await curl(...through(box)[kind], `http://a.example:${originPort}/x`)).toBe(`200 origin a.example:${originPort} /x`);
    expect(box.keeper.learned.map(({ name, addresses: found }) => [name, found.map(({ address }) => address)])).toEqual([["a.example", [ORIGIN]]]);
    expect(box.readLog()).toContainEqual(expect.objectContaining({ kind: "decision", host: "a.example", port: originPort, action: "allow", addresses: [ORIGIN] }));
  });

  test("plain HTTP that was led here goes where its Host says", async () => {
    await using box = await open(["http://a.example"]);
    const led = ["--connect-to", `::127.0.0.1:${box.ports.web}`];
    expect(await curl(...led, "http://a.example/y")).toBe("200 port 80 a.example /y");
    expect(await curl(...led, "http://b.example/y")).toMatch(/^403 \{"status":"blocked","host":"b\.example","port":80,"reason":"not_allowed"/);
  });

  test("TLS that was led here goes where its hello says, and no further", async () => {
    await using box = await open(["a.example"]);
    const led = ["-k", "--connect-to", `::127.0.0.1:${box.ports.tls}`];
    expect(await curl(...led, "https://a.example/")).toBe("200 port 443 a.example");
    expect(await curl(...led, "https://b.example/")).toBe("000 ");
    expect(box.readLog()).toContainEqual(expect.objectContaining({ protocol: "tls-sni", host: "b.example", action: "deny", reason: "not_allowed" }));
  });

  test("a name that is not allowed is refused, and no resolver hears of it", async () => {
    await using box = await open([`a.example:${originPort}`]);
    const before = upstream.asked.length;
    expect(await curl(...through(box).http, `http://secret.example:${originPort}/`)).toMatch(/^403 .*"reason":"not_allowed".*"hint":"agentbox policy allow secret\.example/);
    expect(await curl(...through(box).socks, `http://secret.example:${originPort}/`)).toBe("000 ");
    expect(upstream.asked.slice(before)).toEqual([]);
  });

  test("an address without a name is judged by the list alone", async () => {
    await using box = await open([`${ORIGIN}:${originPort}`]);
    expect(await curl(...through(box).http, `http://${ORIGIN}:${originPort}/`)).toBe(`200 origin ${ORIGIN}:${originPort} /`);
    expect(await curl(...through(box).http, `http://127.0.88.2:${originPort}/`)).toMatch(/^403 .*not_allowed/);
  });

  test("a name that leads to a private address is refused, though allowed", async () => {
    await using box = await open([`a.example:${originPort}`], { allowPrivate: [] });
    expect(await curl(...through(box).http, `http://a.example:${originPort}/`)).toMatch(/^403 .*"reason":"not_allowed_local"/);
    expect(box.keeper.learned).toEqual([]);
  });

  test("names of the hosts file and IPv6 alone are found as well, what does not exist is a failure", async () => {
    await using box = await startBoxWeb({ document: allowing([`file.example:${originPort}`, `six.example:${originPort}`, `none.example:${originPort}`]), upstreams: [RESOLVER], hosts: { "file.example": [ORIGIN] } });
    expect(await curl(...through(box).http, `http://file.example:${originPort}/`)).toMatch(/^200 origin file\.example/);
    expect(await curl(...through(box).http, `http://six.example:${originPort}/`)).toMatch(/^200 six six\.example/);
    expect(await curl(...through(box).http, `http://none.example:${originPort}/`)).toMatch(/^502 /);
  });

  test("a private name is reached on its port at what it was when the policy came", async () => {
    const document = allowing([], { private: [{ host: "db", ports: [originPort] }] });
    await using box = await startBoxWeb({ document, upstreams: [RESOLVER] });
    expect(await curl(...through(box).http, `http://db:${originPort}/`)).toMatch(/^200 origin db/);
    expect(box.keeper.pinned).toMatchObject([{ name: "db", addresses: [ORIGIN] }]);
  });

  test("where the kernel takes no address, nothing is dialled", async () => {
    await using box = await open([`a.example:${originPort}`]);
    box.keeper.verdict = { ok: false, detail: "the set is full" };
    expect(await curl(...through(box).http, `http://a.example:${originPort}/`)).toMatch(/^502 /);
    box.keeper.verdict = { ok: true, detail: "" };
    expect(await curl(...through(box).http, `http://a.example:${originPort}/`)).toMatch(/^200 /);
  });

  test("a resolver that never tells of IPv6 is no failure, and what is known is not asked for again", async () => {
    upstream.script = (asked, query) => (asked.type === "AAAA" ? undefined : honest(asked, query));
    try {
      await using box = await open([`a.example:${originPort}`]);
      const before = upstream.asked.length;
      for (let count = 0; count < 5; count += 1) expect(await curl(...through(box).http, `http://a.example:${originPort}/`)).toMatch(/^200 /);
      expect(upstream.asked.slice(before).filter(({ type }) => type === "A")).toHaveLength(1);
    } finally {
      upstream.script = honest;
    }
  });
});

describe("a new policy", () => {
  test("cuts the tunnel that it does not let through, leaves the other, and both are in the log", async () => {
    await using box = await open([`a.example:${originPort}`, `b.example:${originPort}`]);
    const [left, ending] = await Promise.all([openTunnel(box.ports.http, `a.example:${originPort}`), openTunnel(box.ports.http, `b.example:${originPort}`)]);
    const ended = untilClosed(ending);
    const report = await box.keeper.replace({ document: allowing([`a.example:${originPort}`], { blocks: [{ label: "test", words: [{ text: "b.example" }] }] }) });
    expect(report.ok).toBe(true);
    await ended;
    left.write(`GET / HTTP/1.1\r\nHost: a.example:${originPort}\r\nConnection: close\r\n\r\n`);
    expect(await readAll(left)).toMatch(/^HTTP\/1\.1 200 /);
    expect(await curl(...through(box).http, `http://b.example:${originPort}/`)).toMatch(/^403 .*"reason":"denied"/);
    // What connections carried is summed for ten seconds.
    await expect.poll(() => box.readLog().filter(({ kind }) => kind === "traffic"), { timeout: 30_000 }).toContainEqual(expect.objectContaining({ host: "b.example", protocol: "https-connect", cut: true }));
    expect(box.readLog()).toContainEqual(expect.objectContaining({ kind: "decision", host: "b.example", protocol: "https-connect", action: "deny", reason: "denied" }));
  });

  test("that is refused changes nothing", async () => {
    await using box = await open([`a.example:${originPort}`]);
    const report = await box.keeper.replace({ document: allowing(["https://not-an-entry"]) });
    expect(report.ok).toBe(false);
    expect(await curl(...through(box).http, `http://a.example:${originPort}/`)).toMatch(/^200 /);
  });

  test("with limited methods counts for the next request of a connection that is open", async () => {
    await using box = await open([`a.example:${originPort}`]);
    const document = allowing([`a.example:${originPort}`]);
    expect(await curl(...through(box).http, "-X", "DELETE", `http://a.example:${originPort}/`)).toMatch(/^200 /);
    await box.keeper.replace({ document: { ...document, nameWall: { ...document.nameWall, methods: "limited" } } });
    expect(await curl(...through(box).http, "-X", "DELETE", `http://a.example:${originPort}/`)).toMatch(/^403 .*method_not_allowed/);
    expect(await curl(...through(box).http, `http://a.example:${originPort}/`)).toMatch(/^200 /);
  });
});

function intercepting(hosts: readonly string[], methods: "limited" | "full") {
  const document = allowing(hosts);
  return { ...document, nameWall: { ...document.nameWall, methods, intercept: true } };
}

describe("a box that opens TLS", () => {
  test("judges what is inside with the authority of its session, whether the program knows the proxy or not", async () => {
    const authority = await makeAuthority();
    await using box = await startBoxWeb({ document: intercepting(["a.example"], "limited"), upstreams: [RESOLVER], secrets: { authority }, siteCa });
    const ca = join(box.dir, "ca.pem");
    writeFileSync(ca, authority.certPem);
    for (const way of [through(box).http, through(box).socks, ["--connect-to", `::127.0.0.1:${box.ports.tls}`]]) {
      expect(await curl("--cacert", ca, ...way, "https://a.example/x")).toBe("200 port 443 a.example");
      expect(await curl("--cacert", ca, "-X", "POST", ...way, "https://a.example/x")).toMatch(/^403 .*"reason":"method_not_allowed"/);
      expect(await curl("--cacert", ca, ...way, "-H", "Host: b.example", "https://a.example/x")).toMatch(/^403 .*"reason":"host_mismatch"/);
    }
    expect(JSON.stringify(box.readLog())).not.toContain("PRIVATE KEY");
  });

  test("lets nothing through where it was given no authority", async () => {
    await using box = await startBoxWeb({ document: intercepting(["a.example"], "full"), upstreams: [RESOLVER] });
    for (const way of [through(box).http, through(box).socks, ["--connect-to", `::127.0.0.1:${box.ports.tls}`]]) expect(await curl("-k", ...way, "https://a.example/")).toBe("000 ");
  });
});

describe("behind the site's proxy", () => {
  test("every name leaves through it, with the user and password of the secrets, which no line of the log has", async () => {
    const heads: string[] = [];
    const siteProxy = createTcpServer((socket) => socket.once("data", (bytes) => {
      heads.push(bytes.toString("latin1"));
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsite\n");
    }));
    const port = await findFreePort();
    siteProxy.listen(port, "127.0.0.1");
    await once(siteProxy, "listening");
    servers.push(siteProxy);
    const document = allowing(["http://outside.example"]);
    const nameWall = { ...document.nameWall, upstream: { host: "proxy.corp", port, tls: false } };
    await using box = await startBoxWeb({ document: { ...document, nameWall }, siteProxy: ["127.0.0.1"], secrets: { upstream: { user: "me", password: "hunter2" } } });
    expect(await curl(...through(box).http, "http://outside.example/x")).toBe("200 site");
    expect(heads[0]).toMatch(/^GET http:\/\/outside\.example\/x HTTP\/1\.1\r\n/);
    expect(heads[0]).toContain(`Proxy-Authorization: Basic ${Buffer.from("me:hunter2").toString("base64")}`);
    expect(await curl(...through(box).http, "http://foreign.example/x")).toMatch(/^403 /);
    expect(heads).toHaveLength(1);
    expect(JSON.stringify(box.readLog())).not.toContain("hunter2");
  });
});
