import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, test, vi } from "vitest";
import { runCommand } from "../../lab/command.ts";
import { ask, encodeQuery, exchange, exchangeStream, read } from "./dns-client.ts";
import { FakeUpstream, type Script } from "./fake-upstream.ts";
import { allowing, startResolver } from "./resolver-process.ts";

// What the resolver does at its bounds: connections, slow senders, questions that wait, a disk without room.

const NAME = "api.example.com";
const GOOD = "93.184.216.34";
const honest: Script = ({ name, type }) => (type === "A" ? [{ type: "A", name, ttl: 300, data: GOOD }] : [{ type: "AAAA", name, ttl: 300, data: "2606:2800:220:1::34" }]);
const MAX_CONNECTIONS = 100;
const MAX_WAITING = 2200;

describe("the resolver at its limits", () => {
  test("ends connections that send slowly or nothing; meanwhile it takes no more than a hundred, and answers datagrams", async () => {
    await using upstream = await FakeUpstream.listen("127.53.5.1", honest);
    await using resolver = await startResolver(allowing([NAME]), { upstreams: [upstream.address] });
    const frame = frameOf(encodeQuery({ name: NAME }));
    const slow = await Promise.all(Array.from({ length: MAX_CONNECTIONS }, () => open(resolver.port)));
    const dripping = setInterval(() => {
      for (const { socket } of slow) socket.write(frame.subarray(1, 2));
    }, 1000);
    // Closed at once, or reset when the question is there already.
    expect(await exchangeStream(resolver.port, [frame], 1).catch(() => [])).toEqual([]);
    expect((await ask(resolver.port, NAME)).addresses).toEqual([GOOD]);
    await Promise.all(slow.map(({ closed }) => closed));
    clearInterval(dripping);
    const [heard] = await exchangeStream(resolver.port, [frame], 1);
    expect(heard === undefined ? undefined : read(heard).addresses).toEqual([GOOD]);
  });

  test("answers over IPv6, by datagram and by stream", async () => {
    await using upstream = await FakeUpstream.listen("127.53.5.1", honest);
    await using resolver = await startResolver(allowing([NAME]), { upstreams: [upstream.address] });
    const question = encodeQuery({ name: NAME, type: "AAAA" });
    expect(read(await exchange(resolver.port, question, "::1"))).toMatchObject({ code: "NOERROR", addresses: ["2606:2800:220:1::34"] });
    const [heard] = await exchangeStream(resolver.port, [frameOf(question)], 1, "::1");
    expect(heard === undefined ? undefined : read(heard).code).toBe("NOERROR");
    expect(read(await exchange(resolver.port, encodeQuery({ name: "other.example.org" }), "::1")).code).toBe("NXDOMAIN");
  });

  test("says SERVFAIL to questions beyond those that may wait, and answers all others when the upstream does", async () => {
    let silent = true;
    await using upstream = await FakeUpstream.listen("127.53.5.1", (asked, query) => (silent ? undefined : honest(asked, query)));
    await using resolver = await startResolver(allowing(["*.example.com"]), { upstreams: [upstream.address] });
    const codes = new Map<string, number>();
    const socket = createSocket({ type: "udp4", recvBufferSize: 8 * 1024 * 1024 });
    socket.on("message", (reply) => {
      const { code } = read(reply);
      codes.set(code, (codes.get(code) ?? 0) + 1);
    });
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    for (let index = 0; index < MAX_WAITING + 50; index += 1) {
      socket.send(encodeQuery({ name: `n${index}.example.com` }), resolver.port, "127.0.0.1");
      if (index % 100 === 99) await ask(resolver.port, `pace${index}.example.org`);
    }
    await vi.waitFor(() => expect(codes.get("SERVFAIL")).toBe(50));
    expect(codes.get("NOERROR")).toBeUndefined();
    silent = false;
    await vi.waitFor(() => expect(codes.get("NOERROR")).toBe(MAX_WAITING), { timeout: 20_000 });
    socket.close();
    expect(resolver.readLog()).toContainEqual(expect.objectContaining({ action: "allow", detail: "no answer could be had: too many questions are waiting" }));
  });

  test("answers nothing while its log has no room (simulated by a limit on the size of its files), and goes on with the next number when it has", async () => {
    await using upstream = await FakeUpstream.listen("127.53.5.1", honest);
    await using resolver = await startResolver(allowing(["*.example.com"]), { upstreams: [upstream.address] });
    const limit = (bytes: string): Promise<unknown> => runCommand(["prlimit", "--pid", String(resolver.pid()), `--fsize=${bytes}:unlimited`]);
    expect((await ask(resolver.port, "first.example.com")).code).toBe("NOERROR");
    // Room for one more line and a part of another.
    await limit("1000");
    const codes: string[] = [];
    for (let index = 0; index < 4; index += 1) codes.push((await ask(resolver.port, `n${index}.example.com`)).code);
    expect(codes.at(-1)).toBe("SERVFAIL");
    expect((await ask(resolver.port, "first.example.com")).code).toBe("SERVFAIL");
    expect((await ask(resolver.port, "other.example.org")).code).toBe("SERVFAIL");
    await vi.waitFor(() => expect(resolver.keeper.degraded.join()).toContain("the decision log cannot be written: EFBIG"));
    await limit("unlimited");
    await vi.waitFor(() => expect(resolver.keeper.degraded).toEqual([]));
    expect((await ask(resolver.port, "last.example.com")).code).toBe("NOERROR");
    expect((await ask(resolver.port, "other.example.org")).code).toBe("NXDOMAIN");
    const lines = resolver.readLog();
    expect(lines.map(({ seq }) => seq)).toEqual(lines.map((_, index) => index));
    expect(lines.at(-1)).toMatchObject({ host: "other.example.org", action: "deny" });
  });
});

/** A connection that has sent the first byte of a frame. */
async function open(port: number): Promise<{ socket: Socket; closed: Promise<unknown> }> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => socket.destroy());
  await once(socket, "connect");
  socket.write(Buffer.from([0x0f]));
  return { socket, closed: once(socket, "close") };
}

function frameOf(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}
