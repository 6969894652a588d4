import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";

// The load of bench-proxy, in a process of its own: one task as JSON in argv, its figure on stdout.

const taskSchema = z.strictObject({
  /** The proxy; `direct` for one that needs no asking. */
  port: z.int(),
  ask: z.enum(["connect", "socks", "direct"]),
  host: z.string(),
  kind: z.enum(["bulk", "open", "hold"]),
  /** Bytes to download, connections to open one after the other by `parallel` loops, or connections to hold. */
  amount: z.int(),
  parallel: z.int().default(16),
});
type Task = z.infer<typeof taskSchema>;

const REQUEST = (path: string, host: string): string => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;

function fail(why: string): never {
  process.stderr.write(`bench-proxy client: ${why}\n`);
  process.exit(1);
}

/** Opens a connection through the proxy; `onBytes` gets what the origin sends. */
function openConnection({ port, ask, host, kind }: Task, onBytes: (bytes: Buffer, length: number) => void): Promise<Socket> {
  const { promise, resolve } = Promise.withResolvers<Socket>();
  let greeted = ask === "direct";
  let stage = 0;
  const buffer = Buffer.allocUnsafe(kind === "bulk" ? 1024 * 1024 : 4096);
  const socket = connect({
    port,
    host: "127.0.0.1",
    noDelay: true,
    onread: {
      buffer,
      callback: (length) => {
        if (greeted) onBytes(buffer, length);
        else if (ask === "socks" && stage === 0) {
          stage = 1;
          socket.write(Buffer.concat([Buffer.from([5, 1, 0, 3, host.length]), Buffer.from(host), Buffer.from([0x01, 0xbb])]));
        } else {
          const isOpen = ask === "socks" ? buffer[1] === 0 : buffer.toString("latin1", 9, 12) === "200";
          if (!isOpen) fail(`refused: ${buffer.toString("latin1", 0, length)}`);
          greeted = true;
          resolve(socket);
        }
        return true;
      },
    },
  });
  socket.on("error", (error) => fail(error.message));
  socket.once("connect", () => {
    if (ask === "direct") resolve(socket);
    else if (ask === "socks") socket.write(Buffer.from([5, 1, 0]));
    else socket.write(`CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}:443\r\n\r\n`);
  });
  return promise;
}

/** Downloads so many bytes over one connection; megabytes a second. */
async function bulk(task: Task): Promise<number> {
  let got = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = await openConnection(task, (_bytes, length) => {
    got += length;
    if (got >= task.amount) resolve();
  });
  const started = performance.now();
  socket.write(REQUEST(`/bytes/${task.amount}`, task.host));
  await promise;
  socket.destroy();
  return got / 1000 / (performance.now() - started);
}

/** Opens connections one after the other in parallel loops, asks one small thing through each; connections a second. */
async function open(task: Task): Promise<number> {
  const started = performance.now();
  let left = task.amount;
  const loop = async (): Promise<void> => {
    while ((left -= 1) >= 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const socket = await openConnection(task, () => resolve());
      socket.write(REQUEST("/", task.host));
      await promise;
      socket.destroy();
    }
  };
  await Promise.all(Array.from({ length: task.parallel }, loop));
  return (task.amount * 1000) / (performance.now() - started);
}

/** Opens connections and keeps them until it is ended; says when all are open. */
async function hold(task: Task): Promise<number> {
  for (let count = 0; count < task.amount; count += 50) {
    await Promise.all(Array.from({ length: Math.min(50, task.amount - count) }, () => openConnection(task, () => undefined)));
  }
  await sleep(500);
  process.stdout.write("held\n");
  await sleep(60_000);
  return task.amount;
}

const task = taskSchema.parse(JSON.parse(process.argv[2] ?? "{}"));
process.stdout.write(`${await { bulk, open, hold }[task.kind](task)}\n`);
process.exit(0);
