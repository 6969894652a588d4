import { createHash } from "node:crypto";
import { makeZip } from "./archive-file.ts";
import { send, type Site } from "./http-site.ts";

const WHEEL = "lab_hello-1.0-py3-none-any.whl";

/** A Python package index (PEP 503) with one pure wheel, `lab-hello`, and the host that serves its file. */
export function createPythonIndex(): Site {
  const wheel = makeWheel();
  const digest = createHash("sha256").update(wheel).digest("hex");
  return (visit) => {
    const { pathname } = visit.url;
    if (visit.host === "files.pythonhosted.org" && pathname === `/packages/${WHEEL}`) return send(visit, "application/octet-stream", wheel);
    if (visit.host !== "pypi.org") return false;
    if (pathname === "/simple/") return send(visit, "text/html", '<!DOCTYPE html><a href="/simple/lab-hello/">lab-hello</a>\n');
    if (pathname.replace(/\/$/, "") !== "/simple/lab-hello") return send(visit, "text/html", "not in the lab's index\n", 404);
    const href = `https://files.pythonhosted.org/packages/${WHEEL}#sha256=${digest}`;
    return send(visit, "text/html", `<!DOCTYPE html><a href="${href}">${WHEEL}</a>\n`);
  };
}

function makeWheel(): Buffer {
  const info = "lab_hello-1.0.dist-info";
  const files = [
    { path: "lab_hello/__init__.py", content: 'def greet():\n    return "hello from the lab"\n' },
    { path: `${info}/METADATA`, content: "Metadata-Version: 2.1\nName: lab-hello\nVersion: 1.0\n" },
    { path: `${info}/WHEEL`, content: "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n" },
  ];
  const record = files.map(({ path, content }) => `${path},sha256=${createHash("sha256").update(content).digest("base64url")},${Buffer.byteLength(content)}`);
  return makeZip([...files, { path: `${info}/RECORD`, content: [...record, `${info}/RECORD,,`, ""].join("\n") }]);
}
