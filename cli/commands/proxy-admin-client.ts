import { request, type IncomingMessage } from "node:http";
import { createInterface } from "node:readline";
import type { z } from "zod";
import { errorAnswerSchema } from "../../policy/admin-answers.ts";
import { ConfigError, EngineError } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import type { ProxySettings } from "../../policy/proxy-config.ts";
import { readTokenFile } from "../../proxy/admin/token-file.ts";

export type AdminClientParts = { where: ProxySettings["admin"]; url: string; tokenFile: string };

const ANSWER_LIMIT_MS = 30_000;
/** A policy of a hundred thousand hosts. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** Talks to the admin API of a proxy that runs. Every failure is a KnownError that says what to do. */
export class AdminClient {
  private readonly parts: AdminClientParts;

  constructor(parts: AdminClientParts) {
    this.parts = parts;
  }

  /** Asks, and returns the text of the answer. */
  async ask(method: "GET" | "POST", path: string, body?: string): Promise<string> {
    const response = await this.open(method, path, body);
    const text = await readText(response);
    if (response.statusCode !== 200) throw this.refuse(response.statusCode, text);
    return text;
  }

  /** Asks, and returns the answer as what it has to be. */
  async read<T>(method: "GET" | "POST", path: string, schema: z.ZodType<T>, body?: string): Promise<T> {
    const answer = schema.safeParse(parseJson(await this.ask(method, path, body)));
    if (answer.success) return answer.data;
    throw new EngineError({ what: `what answers at ${this.parts.url} is no proxy of this version`, expected: "the proxy that this command belongs to", fix: "start it anew: agentbox proxy" });
  }

  /** Hands over the data of each event until the proxy ends. */
  async follow(path: string, take: (data: string) => Promise<void>): Promise<void> {
    const response = await this.open("GET", path);
    if (response.statusCode !== 200) throw this.refuse(response.statusCode, await readText(response));
    // However it ends: the proxy did, or was ended.
    response.once("error", () => lines.close());
    const lines = createInterface({ input: response });
    for await (const line of lines) {
      if (line.startsWith("data: ")) await take(line.slice("data: ".length));
    }
  }

  private async open(method: "GET" | "POST", path: string, body?: string): Promise<IncomingMessage> {
    const { where, tokenFile } = this.parts;
    const token = readTokenFile(tokenFile);
    if (token === undefined) throw this.missing(`there is no token at ${quotePath(tokenFile)}`);
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const target = "path" in where ? { socketPath: where.path, headers: { host: "localhost" } } : { host: where.address, port: where.port, headers: {} };
    const call = request({ ...target, method, path, headers: { ...target.headers, authorization: `Bearer ${token}`, ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }) } }, resolve);
    const timer = setTimeout(() => call.destroy(new Error("no answer in 30 s")), ANSWER_LIMIT_MS);
    call.once("response", () => clearTimeout(timer));
    call.once("error", (error) => {
      clearTimeout(timer);
      reject(this.missing("code" in error ? String(error.code) : error.message));
    });
    call.end(body);
    return await promise;
  }

  private missing(why: string): EngineError {
    return new EngineError({ what: `no proxy answers at ${this.parts.url} (${why})`, expected: "a running `agentbox proxy` with the same configuration", fix: "start it, or name its file by --config" });
  }

  private refuse(status: number | undefined, text: string): EngineError | ConfigError {
    const answer = errorAnswerSchema.safeParse(parseJson(text));
    const what = answer.success ? answer.data.error : `the proxy answers with status ${status}`;
    if (status === 422) return new ConfigError(what.split(/\n(?! )/).map((line) => ({ what: line })));
    return new EngineError({ what: `the proxy at ${this.parts.url} refuses: ${what}`, fix: status === 401 ? "start the proxy anew: another one may have taken its place" : undefined });
  }
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response) {
    if (!Buffer.isBuffer(chunk)) continue;
    length += chunk.length;
    if (length > MAX_ANSWER_BYTES) throw new EngineError({ what: "the answer of the proxy has no end", expected: "less than 64 MiB" });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The schema refuses it.
    return undefined;
  }
}
