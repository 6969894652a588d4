import { createHash } from "node:crypto";
import { makeTarGz } from "./archive-file.ts";
import { send, sendJson, type Site } from "./http-site.ts";

type Release = { manifest: Record<string, unknown>; tarball: Buffer };
type Package = { name: string; latest: string; releases: Map<string, Release> };

const HOST = "registry.npmjs.org";

/** A small npm registry: `lab-hello` (1.0.0, 1.1.0) depends on `lab-greeting`; documents and tarballs. */
export function createNpmRegistry(): Site {
  const packages = new Map([makeGreeting(), makeHello()].map((made) => [made.name, made]));
  return (visit) => {
    if (visit.host !== HOST) return false;
    const { pathname } = visit.url;
    if (pathname === "/") return sendJson(visit, { db_name: "registry", lab: true });
    if (pathname.startsWith("/-/npm/v1/security/")) return sendJson(visit, {});
    if (pathname === "/-/ping") return sendJson(visit, {});
    const [, name = "", rest, file] = decodeURIComponent(pathname).split("/");
    const found = packages.get(name);
    if (found === undefined) return sendJson(visit, { error: "Not found" }, 404);
    if (rest === undefined) return sendJson(visit, packument(found, visit.secure ? "https" : "http", visit.host));
    const release = found.releases.get(versionIn(rest, file, found));
    if (release === undefined) return sendJson(visit, { error: "Not found" }, 404);
    if (rest === "-") return send(visit, "application/octet-stream", release.tarball);
    return sendJson(visit, release.manifest);
  };
}

function versionIn(rest: string, file: string | undefined, { name, latest }: Package): string {
  if (rest === "-") return (file ?? "").slice(name.length + 1, -".tgz".length);
  return rest === "latest" ? latest : rest;
}

function packument({ name, latest, releases }: Package, scheme: string, host: string): unknown {
  const versions = [...releases].map(([version, { manifest, tarball }]) => [
    version,
    {
      ...manifest,
      dist: {
        tarball: `${scheme}://${host}/${name}/-/${name}-${version}.tgz`,
        shasum: createHash("sha1").update(tarball).digest("hex"),
        integrity: `sha512-${createHash("sha512").update(tarball).digest("base64")}`,
      },
    },
  ]);
  const time = Object.fromEntries([...releases.keys()].map((version) => [version, "2026-01-01T00:00:00.000Z"]));
  return { _id: name, name, "dist-tags": { latest }, versions: Object.fromEntries(versions), time };
}

function makeGreeting(): Package {
  const release = makeRelease({ name: "lab-greeting", version: "2.0.0", main: "index.js" }, [
    { path: "package/index.js", content: 'module.exports = (name) => `hello ${name}`;\n' },
  ]);
  return { name: "lab-greeting", latest: "2.0.0", releases: new Map([["2.0.0", release]]) };
}

function makeHello(): Package {
  const releases = ["1.0.0", "1.1.0"].map((version): [string, Release] => [
    version,
    makeRelease({ name: "lab-hello", version, bin: { "lab-hello": "cli.js" }, dependencies: { "lab-greeting": "^2.0.0" } }, [
      { path: "package/cli.js", content: '#!/usr/bin/env node\nconsole.log(require("lab-greeting")("lab"));\n', mode: 0o755 },
    ]),
  ]);
  return { name: "lab-hello", latest: "1.1.0", releases: new Map(releases) };
}

function makeRelease(manifest: Record<string, unknown>, files: { path: string; content: string; mode?: number }[]): Release {
  const description = { ...manifest, description: "a package of the lab", license: "MIT" };
  return { manifest: description, tarball: makeTarGz([{ path: "package/package.json", content: JSON.stringify(description) }, ...files]) };
}
