import type { Upstream } from "../../policy/proxy-words.ts";
import type { Connection } from "../net/connection.ts";
import type { Dialled } from "./dial.ts";

const ANSWER_LIMIT_MS = 10_000;
const MAX_ANSWER_BYTES = 16 * 1024;
const HEAD_END = "\r\n\r\n";

/** The header that shows the site's proxy who asks; empty without a user. */
export function renderAuthorization({ user, password }: Upstream): string {
  return user === "" ? "" : `Proxy-Authorization: Basic ${Buffer.from(`${user}:${password}`).toString("base64")}\r\n`;
}

/** Asks the site's proxy for a tunnel; the connection is the tunnel afterwards. */
export function askTunnel(connection: Connection, { target, upstream }: { target: string; upstream: Upstream }): Promise<Dialled> {
  const { promise, resolve } = Promise.withResolvers<Dialled>();
  let answer = "";
  const fail = (status: 502 | 504, why: string): void => {
    clearTimeout(timer);
    connection.destroy();
    resolve({ ok: false, status, why: `the site's proxy ${why}` });
  };
  const timer = setTimeout(() => fail(504, "does not answer"), ANSWER_LIMIT_MS);
  connection.read({
    onBytes: (bytes) => {
      answer += bytes.toString("latin1");
      const end = answer.indexOf(HEAD_END);
      if (end < 0 && answer.length <= MAX_ANSWER_BYTES) return true;
      const status = /^HTTP\/1\.[01] (?<status>[0-9]{3})(?: |\r\n)/.exec(answer)?.groups?.["status"];
      if (status !== "200") fail(502, status === undefined ? "does not answer in HTTP" : `refuses ${target} with status ${status}`);
      // Nobody was asked anything yet, so what follows is none of the target's.
      else if (answer.length > end + HEAD_END.length) fail(502, "sends bytes ahead of the tunnel");
      else {
        clearTimeout(timer);
        resolve({ ok: true, connection });
      }
      return false;
    },
    onEnd: () => fail(502, "ends the connection"),
    onClose: () => fail(502, "ends the connection"),
  });
  connection.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${renderAuthorization(upstream)}\r\n`);
  return promise;
}
