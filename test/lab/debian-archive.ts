import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { makeAr, makeTarGz } from "./archive-file.ts";
import { send, type Site } from "./http-site.ts";
import { ARCHIVE_HOST } from "./special-names.ts";

const ARCHITECTURES = ["all", "amd64", "arm64", "armhf", "i386"];
const POOL_PATH = "pool/main/l/lab-hello/lab-hello_1.0_all.deb";

/**
 * A Debian archive with one package, `lab-hello`, whose `/usr/bin/lab-hello` prints one line. It is not
 * signed: a source needs `[trusted=yes]`. Every suite holds the same.
 */
export function createDebianArchive(): Site {
  const debFile = makePackage();
  const packages = renderPackages(debFile);
  const indexes = new Map<string, Buffer>(
    ARCHITECTURES.flatMap((architecture) => [
      [`main/binary-${architecture}/Packages`, Buffer.from(packages)],
      [`main/binary-${architecture}/Packages.gz`, gzipSync(packages)],
    ]),
  );
  return (visit) => {
    if (visit.host !== ARCHIVE_HOST) return false;
    if (visit.url.pathname.endsWith(`/${POOL_PATH}`)) return send(visit, "application/vnd.debian.binary-package", debFile);
    const [, suite = "", index = ""] = /\/dists\/([^/]+(?:\/updates)?)\/(.+)$/.exec(visit.url.pathname) ?? [];
    if (index === "Release") return send(visit, "text/plain", renderRelease(suite, indexes));
    const found = indexes.get(index);
    return found === undefined ? send(visit, "text/plain", "not in the lab's archive\n", 404) : send(visit, "text/plain", found);
  };
}

function makePackage(): Buffer {
  const control = ["Package: lab-hello", "Version: 1.0", "Architecture: all", "Maintainer: Lab <lab@lab-names.example>", "Description: a package of the lab", ""];
  return makeAr([
    { path: "debian-binary", content: "2.0\n" },
    { path: "control.tar.gz", content: makeTarGz([{ path: "./control", content: control.join("\n") }]) },
    { path: "data.tar.gz", content: makeTarGz([{ path: "./usr/bin/lab-hello", content: "#!/bin/sh\necho hello from the lab\n", mode: 0o755 }]) },
  ]);
}

function renderPackages(debFile: Buffer): string {
  return [
    "Package: lab-hello",
    "Version: 1.0",
    "Architecture: all",
    "Maintainer: Lab <lab@lab-names.example>",
    `Filename: ${POOL_PATH}`,
    `Size: ${debFile.length}`,
    `SHA256: ${sha256(debFile)}`,
    "Description: a package of the lab",
    "",
    "",
  ].join("\n");
}

function renderRelease(suite: string, indexes: ReadonlyMap<string, Buffer>): string {
  const digests = [...indexes].map(([path, content]) => ` ${sha256(content)} ${content.length} ${path}`);
  const head = ["Origin: AgentBox lab", `Suite: ${suite}`, `Codename: ${suite}`, "Date: Thu, 01 Jan 2026 00:00:00 UTC"];
  return [...head, `Architectures: ${ARCHITECTURES.join(" ")}`, "Components: main", "SHA256:", ...digests, ""].join("\n");
}

function sha256(content: Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}
