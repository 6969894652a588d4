import { crc32, gzipSync } from "node:zlib";

/** One regular file of an archive made by the lab. */
export type ArchiveFile = { path: string; content: string | Buffer; mode?: number };

const TAR_BLOCK = 512;

/** Makes a gzip-compressed POSIX ustar archive; paths up to 100 bytes, times zero so that digests are stable. */
export function makeTarGz(files: readonly ArchiveFile[]): Buffer {
  const blocks = files.flatMap((file) => {
    const content = Buffer.from(file.content);
    const padding = Buffer.alloc((TAR_BLOCK - (content.length % TAR_BLOCK)) % TAR_BLOCK);
    return [tarHeader(file, content.length), content, padding];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(2 * TAR_BLOCK)]));
}

/** Makes a zip archive without compression, as wheels may be. */
export function makeZip(files: readonly ArchiveFile[]): Buffer {
  const locals: Buffer[] = [];
  const central: Buffer[] = [];
  let offset = 0;
  for (const file of files) {
    const name = Buffer.from(file.path);
    const content = Buffer.from(file.content);
    const common = zipCommonHeader(name, content);
    const local = Buffer.concat([Buffer.from("PK\u0003\u0004", "latin1"), common, name, content]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(((file.mode ?? 0o644) | 0o100_000) * 65_536, 6);
    tail.writeUInt32LE(offset, 10);
    // 0x0314: made on Unix, so that the mode in the upper half of the attributes counts.
    central.push(Buffer.concat([Buffer.from("PK\u0001\u0002\u0014\u0003", "latin1"), common, tail, name]));
    locals.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(22);
  end.write("PK\u0005\u0006", "latin1");
  end.writeUInt16LE(files.length, 8);
  end.writeUInt16LE(files.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, directory, end]);
}

/** Makes a Unix `ar` archive, the outer form of a Debian package. */
export function makeAr(files: readonly ArchiveFile[]): Buffer {
  const members = files.flatMap((file) => {
    const content = Buffer.from(file.content);
    const fields = [file.path.padEnd(16), "0".padEnd(12), "0".padEnd(6), "0".padEnd(6), "100644".padEnd(8), String(content.length).padEnd(10), "`\n"];
    return [Buffer.from(fields.join("")), content, Buffer.from(content.length % 2 === 1 ? "\n" : "")];
  });
  return Buffer.concat([Buffer.from("!<arch>\n"), ...members]);
}

function tarHeader(file: ArchiveFile, size: number): Buffer {
  const header = Buffer.alloc(TAR_BLOCK);
  header.write(file.path, 0, 100);
  header.write(octal(file.mode ?? 0o644, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  header.write(octal(size, 11), 124);
  header.write(octal(0, 11), 136);
  header.write("        0", 148);
  header.write("ustar\u000000", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${octal(sum, 6)}\u0000 `, 148);
  return header;
}

function octal(value: number, width: number): string {
  return value.toString(8).padStart(width, "0");
}

function zipCommonHeader(name: Buffer, content: Buffer): Buffer {
  const header = Buffer.alloc(26);
  header.writeUInt16LE(20, 0);
  // 1980-01-01, the first date the format knows.
  header.writeUInt16LE(0x21, 8);
  header.writeUInt32LE(crc32(content), 10);
  header.writeUInt32LE(content.length, 14);
  header.writeUInt32LE(content.length, 18);
  header.writeUInt16LE(name.length, 22);
  return header;
}
