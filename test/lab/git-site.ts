import { spawn } from "node:child_process";
import { GIT_ENV, type GitRepositories } from "./git-repositories.ts";
import { send, type Site, type Visit } from "./http-site.ts";

const SERVICE_PATH = /^(\/.+?)\/(info\/refs|git-upload-pack|git-receive-pack)$/;

/** git over HTTP on every host: the paths of the smart protocol go to git's own `http-backend`. */
export function createGitSite(repositories: GitRepositories): Site {
  return async (visit) => {
    const [, path, service] = SERVICE_PATH.exec(visit.url.pathname) ?? [];
    if (path === undefined || service === undefined) return false;
    const repository = await repositories.open(path);
    if (repository === undefined) return send(visit, "text/plain", "no such repository in the lab\n", 404);
    runBackend(visit, await repositories.root(), `/${repository}/${service}`);
    return true;
  };
}

function runBackend({ request, response, url, arrival }: Visit, root: string, pathInfo: string): void {
  const backend = spawn("git", ["http-backend"], {
    stdio: ["pipe", "pipe", "ignore"],
    env: {
      ...GIT_ENV,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      PATH_INFO: pathInfo,
      REQUEST_METHOD: request.method ?? "GET",
      QUERY_STRING: url.search.slice(1),
      CONTENT_TYPE: request.headers["content-type"] ?? "",
      HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "",
      REMOTE_ADDR: arrival.client,
      REMOTE_USER: "lab",
      ...(typeof request.headers["git-protocol"] === "string" ? { GIT_PROTOCOL: request.headers["git-protocol"] } : {}),
    },
  });
  backend.on("error", () => response.destroy());
  backend.stdin.on("error", () => {});
  request.pipe(backend.stdin);
  response.on("close", () => backend.kill());

  // A CGI program writes header lines, an empty line, then the body (RFC 3875).
  let head = Buffer.alloc(0);
  const readHead = (chunk: Buffer) => {
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf("\r\n\r\n");
    if (end === -1) return;
    backend.stdout.off("data", readHead);
    writeHead(response, head.subarray(0, end).toString("latin1"));
    response.write(head.subarray(end + 4));
    backend.stdout.pipe(response);
  };
  backend.stdout.on("data", readHead);
  backend.stdout.on("end", () => response.end());
}

function writeHead(response: Visit["response"], text: string): void {
  for (const line of text.split("\r\n")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon);
    const value = line.slice(colon + 1).trim();
    if (name.toLowerCase() === "status") response.statusCode = Number.parseInt(value, 10);
    else response.setHeader(name, value);
  }
}
