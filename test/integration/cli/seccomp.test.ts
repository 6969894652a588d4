import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { arch, tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildSeccompProfile } from "../../../cli/engine/seccomp-profile.ts";

const image = `agentbox-test-seccomp:${process.pid}`;
const usable = arch() === "x64" && spawnSync("docker", ["info"], { stdio: "ignore" }).status === 0;

/** Where the programs below are loaded; low enough for the pointers of 32-bit calls. */
const base = 0x40_00_00;
const headerBytes = 120;
const opened = 253;
const eperm = 1;
const enosys = 38;

let directory: string;

beforeAll(() => {
  if (!usable) return;
  directory = mkdtempSync(path.join(tmpdir(), "agentbox-seccomp-"));
  writeFileSync(path.join(directory, "profile.json"), JSON.stringify(buildSeccompProfile()));
  const tar = execFileSync("tar", ["-C", directory, "-c", "profile.json"]);
  execFileSync("docker", ["import", "-", image], { input: tar, stdio: ["pipe", "ignore", "inherit"] });
});

afterAll(() => {
  if (!usable) return;
  spawnSync("docker", ["rmi", "--force", image], { stdio: "ignore" });
  rmSync(directory, { recursive: true });
});

/** Wraps machine code into the smallest program that Linux takes. */
function makeProgram(code: readonly number[]): Buffer {
  const header = Buffer.alloc(headerBytes);
  const size = BigInt(headerBytes + code.length);
  header.write("\x7fELF\x02\x01\x01", "latin1");
  header.writeUInt16LE(2, 16); // executable
  header.writeUInt16LE(62, 18); // x86-64
  header.writeUInt32LE(1, 20);
  header.writeBigUInt64LE(BigInt(base + headerBytes), 24); // entry
  header.writeBigUInt64LE(64n, 32); // program header
  header.writeUInt16LE(64, 52);
  header.writeUInt16LE(56, 54);
  header.writeUInt16LE(1, 56);
  header.writeUInt32LE(1, 64); // load
  header.writeUInt32LE(7, 68); // readable, writable, executable
  header.writeBigUInt64LE(BigInt(base), 80);
  header.writeBigUInt64LE(BigInt(base), 88);
  header.writeBigUInt64LE(size, 96);
  header.writeBigUInt64LE(size, 104);
  header.writeBigUInt64LE(4096n, 112);
  return Buffer.concat([header, Buffer.from(code)]);
}

/** exit(-result): the error number, or 253 (-3) for the first descriptor that a program opens. */
const exitWithResult = [0x89, 0xc7, 0xf7, 0xdf, 0xb8, 60, 0, 0, 0, 0x0f, 0x05];

/** socket(family, SOCK_STREAM, 0) by the 64-bit call, the family in all 64 bits of its register. */
function openSocket(family: bigint): number[] {
  const register = Buffer.alloc(8);
  register.writeBigUInt64LE(family);
  return [0x48, 0xbf, ...register, 0xbe, 1, 0, 0, 0, 0x31, 0xd2, 0xb8, 41, 0, 0, 0, 0x0f, 0x05, ...exitWithResult];
}

/** The same by a 32-bit call, which a 64-bit program may make, too. */
function openSocketOf32Bit(family: number): number[] {
  return [0xb8, 0x67, 1, 0, 0, 0xbb, family, 0, 0, 0, 0xb9, 1, 0, 0, 0, 0x31, 0xd2, 0xcd, 0x80, ...exitWithResult];
}

/** The same by socketcall(SYS_SOCKET, …), whose arguments lie in memory behind the code. */
function openSocketByMemory(family: number): number[] {
  const code = [0xb8, 102, 0, 0, 0, 0xbb, 1, 0, 0, 0, 0xb9, 0, 0, 0, 0, 0xcd, 0x80, ...exitWithResult];
  const pointer = Buffer.alloc(4);
  pointer.writeUInt32LE(base + headerBytes + code.length);
  code.splice(11, 4, ...pointer);
  return [...code, family, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
}

/** io_uring_setup(8, NULL). */
const setUpRing = [0xbf, 8, 0, 0, 0, 0x31, 0xf6, 0xb8, 0xa9, 1, 0, 0, 0x0f, 0x05, ...exitWithResult];

function runInBox(code: readonly number[], profile: string): number | null {
  const program = path.join(directory, "program");
  writeFileSync(program, makeProgram(code));
  chmodSync(program, 0o755);
  const mount = `type=bind,source=${program},target=/program,readonly`;
  return spawnSync("docker", ["run", "--rm", "--network", "none", "--security-opt", `seccomp=${profile}`, "--mount", mount, image, "/program"]).status;
}

const vsock = 40;

describe.skipIf(!usable)("sockets in a real container under the profile", () => {
  test.each([
    { name: "IPv4 opens", code: openSocket(2n), result: opened },
    { name: "IPv6 opens", code: openSocket(10n), result: opened },
    { name: "UNIX opens", code: openSocket(1n), result: opened },
    { name: "AF_VSOCK is refused", code: openSocket(40n), result: eperm },
    { name: "AF_VSOCK is refused with bits that the kernel ignores", code: openSocket((1n << 32n) + 40n), result: eperm },
    { name: "IPv4 opens by the 32-bit call", code: openSocketOf32Bit(2), result: opened },
    { name: "AF_VSOCK is refused by the 32-bit call", code: openSocketOf32Bit(vsock), result: eperm },
    { name: "no socket opens by socketcall, which hides its family", code: openSocketByMemory(vsock), result: enosys },
    { name: "io_uring, which opens sockets itself, is refused", code: setUpRing, result: eperm },
  ])("$name", ({ code, result }) => {
    expect(runInBox(code, path.join(directory, "profile.json"))).toBe(result);
  });

  test("the program that is refused works without a profile (control)", () => {
    expect(runInBox(openSocketByMemory(2), "unconfined")).toBe(opened);
    expect(runInBox(openSocket((1n << 32n) + 2n), "unconfined")).toBe(opened);
  });
});
