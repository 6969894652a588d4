import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findFreePort } from "../standalone/free-port.ts";
import { allowing, type BoxWebProcess, startBoxWeb } from "./box-web-process.ts";

// Which of a name's addresses is dialled, and what a client hears of one that never answers.

const ORIGIN = "127.0.88.3";
/** Its queue of connections is full, so that the kernel answers no further one. */
const SILENT = `
import socket, sys, time
server = socket.socket(); server.bind(("${ORIGIN}", 0)); server.listen(0)
waiting = [socket.socket() for _ in range(4)]
for client in waiting: client.setblocking(False); client.connect_ex(server.getsockname())
print(server.getsockname()[1], flush=True)
sys.stdin.read()
`;

const origin = createServer((_request, response) => response.end("origin"));
const six = createServer((_request, response) => response.end("six"));
const silent = spawn("/usr/bin/python3", ["-c", SILENT], { stdio: ["pipe", "pipe", "inherit"] });
let port = 0;
let silentPort = 0;
let box: BoxWebProcess;

beforeAll(async () => {
  const [line] = await once(silent.stdout, "data");
  silentPort = Number(String(line));
  port = await findFreePort(ORIGIN);
  origin.listen(port, ORIGIN);
  await once(origin, "listening");
  six.listen(port, "::1");
  await once(six, "listening");
  const hosts = { "mixed.example": ["10.255.255.1", ORIGIN], "inside.example": ["10.255.255.1"], "silent.example": [ORIGIN] };
  box = await startBoxWeb({ document: allowing([`[::1]:${port}`, ...Object.keys(hosts).map((name) => `${name}:${port},${silentPort}`)]), hosts });
});
afterAll(async () => {
  await box[Symbol.asyncDispose]();
  origin.close();
  six.close();
  silent.kill();
});

const http = (): string[] => ["-x", `http://127.0.0.1:${box.ports.http}`];
const socks = (): string[] => ["-x", `socks5h://127.0.0.1:${box.ports.socks}`];

/** Status of the answer, status of CONNECT, and what curl says where there is neither. */
async function curl(...args: string[]): Promise<string> {
  return await new Promise((resolve) => {
    execFile("curl", ["-sS", "-m", "25", "-w", "\n%{http_code} %{http_connect}", ...args], { env: {} }, (_error, stdout, stderr) => resolve(`${stdout.slice(stdout.lastIndexOf("\n") + 1)} ${stderr.trim()}`.trim()));
  });
}

test("of a name with public and private addresses only those are dialled that it may lead to", async () => {
  expect(await curl(...http(), `http://mixed.example:${port}/`)).toBe("200 000");
  expect(box.readLog()).toContainEqual(expect.objectContaining({ host: "mixed.example", action: "allow", addresses: [ORIGIN] }));
  expect(await curl(...http(), `http://inside.example:${port}/`)).toBe("403 000");
  expect(box.readLog()).toContainEqual(expect.objectContaining({ host: "inside.example", action: "deny", reason: "not_allowed_local" }));
});

test.each([
  { what: "a plain request", argv: http, reached: "200 000", refused: "403 000" },
  { what: "CONNECT", argv: () => [...http(), "-p"], reached: "200 200", refused: expect.stringMatching(/^000 403 /) },
  { what: "SOCKS", argv: socks, reached: "200 000", refused: expect.stringMatching(/^000 000 .*\(2\)$/) },
])("an IPv6 address is reached by $what where it is listed, and the one beside it is not", async ({ argv, reached, refused }) => {
  expect(await curl(...argv(), `http://[::1]:${port}/`)).toBe(reached);
  expect(await curl(...argv(), `http://[::2]:${port}/`)).toEqual(refused);
});

test.concurrent.each([
  { what: "504 for a plain request", argv: http, says: /^504 000$/ },
  { what: "504 for CONNECT, and no tunnel that leads nowhere", argv: () => [...http(), "-p"], says: /^000 504 .*CONNECT tunnel failed/ },
  { what: "host unreachable (4) for SOCKS", argv: socks, says: /^000 000 .*\(4\)$/ },
])("a server that never answers is $what", async ({ argv, says }) => {
  expect(await curl(...argv(), `http://silent.example:${port}/`)).toMatch(/^200 /);
  expect(await curl(...argv(), `http://silent.example:${silentPort}/`)).toMatch(says);
});
