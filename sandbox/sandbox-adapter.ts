import type { z } from "zod";
import { UsageError } from "../policy/errors.ts";
import { quotePath } from "../policy/parsed.ts";
import { findStrictest, guardPreview, type Preview } from "./batch-preview.ts";
import type { AuditedRequest, AuditLogger } from "./audit-logger.ts";
import { AuditedStream, limitStream } from "./audited-stream.ts";
import type { ConfirmationBroker } from "./confirmation-broker.ts";
import { FileError } from "./errors.ts";
import type { FileSystemDriver } from "./file-system-driver.ts";
import type { GrantManager } from "./grant-manager.ts";
import { endWith, type Judged, runGuarded } from "./guarded-operation.ts";
import { describeAction, describeBelow, sizeOf } from "./judged-action.ts";
import type { Located } from "./located.ts";
import type { PathResolver } from "./path-resolver.ts";
import type { BatchVerdict, PolicyEngine } from "./policy-engine.ts";
import {
  type FileContent, type FileRequest, fileRequestSchema, type FileResponse, type Intent, type ListRequest, listRequestSchema, type ListResponse, type MoveRequest, moveRequestSchema, type RestoreRequest,
  restoreRequestSchema, type WriteRequest,
} from "./request.ts";

const DEFAULT_LIMIT = 10_000;

export type SandboxParts = {
  grants: GrantManager;
  resolver: PathResolver;
  policy: PolicyEngine;
  broker: ConfirmationBroker;
  driver: FileSystemDriver;
  /** The log of a session; throws GuardError `no-session`. */
  auditOf: (sessionId: string) => AuditLogger;
};

type JudgedPlace = Judged & { located: Located };
type JudgedMove = Judged & { source: Located; destination: Located };

/**
 * The way through which an agent uses files. Each operation is judged (grant, path, rules), written down, asked about where it is
 * risky, done through the handles of the judgement, and written down again.
 *
 * Every method throws GuardError for what is refused, FileError for what the file system does not do, UsageError for a
 * request that is malformed. A refused operation read and changed nothing.
 */
export class SandboxAdapter {
  readonly #parts: SandboxParts;
  readonly #running = new Set<Promise<unknown>>();

  constructor(parts: SandboxParts) {
    this.#parts = parts;
  }

  /** Reads a file: bytes up to 256 KiB, above that a stream, which is to be read to its end or closed. */
  async readFile(written: FileRequest): Promise<FileResponse> {
    const request = parseFor(fileRequestSchema, written, ["read"]);
    return await this.#onPlace<FileResponse>(request, undefined, async ({ verdict, located }, { confirmed, operation }) => {
      const { size, digest, content } = await this.#parts.driver.read(located);
      const response = { path: located.path, intent: request.intent, verdict, confirmed, size, digest };
      if (digest !== undefined) return { response: { ...response, content }, outcome: { size, digest } };
      return { response: { ...response, content: new AuditedStream(content, operation) }, outcome: "later" };
    });
  }

  /** Writes a file whole, or leaves the old one; with the intent `create` there must be none. */
  async writeFile({ content, ...written }: WriteRequest): Promise<FileResponse> {
    const request = parseFor(fileRequestSchema, written, ["write", "create"]);
    if (!isContent(content)) throw new UsageError({ what: "the request has no content", expected: "a string, bytes, or an async iterable of bytes" });
    const size = sizeOf(content, request.sizeHint);
    return await this.#onPlace(request, size, async ({ verdict, located }, { confirmed }) => {
      const done = await this.#parts.driver.write(located, limit(content, size, located.path));
      return { response: { path: located.path, intent: request.intent, verdict, confirmed, size: done.size, digest: done.digest }, outcome: { size: done.size, digest: done.digest } };
    });
  }

  /** Makes a directory. */
  async createDirectory(written: FileRequest): Promise<FileResponse> {
    const request = parseFor(fileRequestSchema, written, ["create"]);
    return await this.#onPlace(request, 0, async ({ verdict, located }, { confirmed }) => {
      await this.#parts.driver.createDirectory(located);
      return { response: { path: located.path, intent: request.intent, verdict, confirmed }, outcome: {} };
    });
  }

  /** Deletes a file, a link or an empty directory. */
  async deleteFile(written: FileRequest): Promise<FileResponse> {
    const request = parseFor(fileRequestSchema, written, ["delete"]);
    return await this.#onPlace(request, undefined, async ({ verdict, located }, { confirmed }) => {
      const { size } = located;
      const { trashId } = await this.#parts.driver.delete(located);
      return { response: { path: located.path, intent: request.intent, verdict, confirmed, size, trashId }, outcome: { size } };
    });
  }

  /** Moves within a root, or renames within a directory; a file that is there already is replaced after a yes. */
  async moveFile(written: MoveRequest): Promise<FileResponse> {
    const request = parseFor(moveRequestSchema, written, ["move", "rename"]);
    const { sessionId, intent } = request;
    return await this.#run<JudgedMove>(request, {
      judge: (opened) => {
        const { source, destination } = this.#parts.resolver.locateMove(request);
        opened.push(source, destination);
        if (intent === "rename" && source.parent.path !== destination.parent.path) throw new UsageError({ what: "a rename stays in its directory", expected: "a destinationPath beside the path", fix: "use the intent move" });
        const verdict = this.#parts.policy.decide(describeAction(intent, source, { destination }));
        return { verdict, root: source.grant.root, path: source.path, destinationPath: destination.path, size: hasBytes(source) ? source.size : undefined, source, destination };
      },
      operate: async ({ verdict, source, destination }, { confirmed }) => {
        await this.#parts.driver.move(source, destination, { overwrite: destination.kind !== "missing" });
        return { response: { path: destination.path, intent, verdict, confirmed, size: source.size }, outcome: { size: source.size } };
      },
      sessionId,
    });
  }

  /** Lists a directory. Links are shown and not followed; directories below that a rule denies are named and not entered. */
  async listFiles(written: ListRequest): Promise<ListResponse> {
    const request = parseFor(listRequestSchema, written, ["list"]);
    return await this.#onPlace(request, undefined, async ({ verdict, located }) => {
      const { entries, truncated } = await this.#parts.driver.list(located, { recursive: request.recursive ?? false, limit: request.limit ?? DEFAULT_LIMIT, mayEnter: (path) => this.#parts.policy.decide(describeBelow(located, path)).decision !== "deny" });
      return { response: { path: located.path, entries, truncated, verdict }, outcome: { size: entries.length } };
    });
  }

  /** Brings back what a deletion put into the trash, to where it stood. */
  async restoreFile(written: RestoreRequest): Promise<FileResponse> {
    const { trashId, ...asked } = parseRequest(restoreRequestSchema, written);
    const { origin, size } = this.#findTrashed(asked, trashId);
    const request = { ...asked, intent: "create" as const, path: origin };
    return await this.#onPlace(request, size, async ({ verdict, located }, { confirmed }) => {
      await this.#parts.driver.restore(trashId, located);
      return { response: { path: located.path, intent: request.intent, verdict, confirmed, size, trashId }, outcome: { size } };
    });
  }

  /**
   * Tells what would be decided about operations that belong together, with the risks of all; nothing is done, asked or
   * written down. What is refused before any rule is `deny` with the id of what refuses it.
   */
  previewBatch(written: readonly (FileRequest | MoveRequest)[]): BatchVerdict {
    const previews = written.map((one) => this.#preview(one));
    const { tags, verdicts } = this.#parts.policy.decideBatch(previews.map(({ action }) => action));
    const judged = verdicts.map((verdict, index) => ({ ...verdict, ...previews[index]?.refused }));
    return { decision: findStrictest(judged), tags, verdicts: judged };
  }

  #preview(written: FileRequest | MoveRequest): Preview {
    const opened: Located[] = [];
    try {
      if ("destinationPath" in written) {
        const request = parseFor(moveRequestSchema, written, ["move", "rename"]);
        return guardPreview(request.intent, () => {
          const { source, destination } = this.#parts.resolver.locateMove(request);
          opened.push(source, destination);
          return describeAction(request.intent, source, { destination });
        });
      }
      const request = parseFor(fileRequestSchema, written, ["read", "write", "create", "delete", "list"]);
      return guardPreview(request.intent, () => {
        const located = this.#parts.resolver.locate(request);
        opened.push(located);
        return describeAction(request.intent, located, { size: request.sizeHint });
      });
    } finally {
      for (const located of opened) located.close();
    }
  }

  /** Waits until what is being done now has ended, one way or the other. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#running);
  }

  #onPlace<T>(request: FileRequest, size: number | undefined, operate: Parameters<typeof runGuarded<JudgedPlace, T>>[1]["operate"]): Promise<T> {
    return this.#run<JudgedPlace, T>(request, {
      sessionId: request.sessionId,
      judge: (opened) => {
        const located = this.#parts.resolver.locate(request);
        opened.push(located);
        const action = describeAction(request.intent, located, { size });
        return { verdict: this.#parts.policy.decide(action), root: located.grant.root, path: located.path, size: hasBytes(located) ? action.size : undefined, located };
      },
      operate,
    });
  }

  async #run<J extends Judged, T = FileResponse>(request: AuditedRequest, { sessionId, judge, operate }: { sessionId: string; judge: (opened: Located[]) => J; operate: Parameters<typeof runGuarded<J, T>>[1]["operate"] }): Promise<T> {
    const opened: Located[] = [];
    const running = runGuarded({ audit: this.#parts.auditOf(sessionId), broker: this.#parts.broker }, {
      sessionId,
      request,
      judge: () => judge(opened),
      operate,
      hold: () => opened.forEach((located) => located.holdToState()),
    });
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
      for (const located of opened) located.close();
    }
  }

  /** Where a deleted thing stood. An id that nothing has is in the log as well: somebody tried it. */
  #findTrashed({ sessionId, taskId }: { sessionId: string; taskId: string }, trashId: string): { origin: string; size: number } {
    const audit = this.#parts.auditOf(sessionId);
    try {
      for (const grant of this.#parts.grants.list(sessionId).filter(({ trash }) => trash)) {
        const trashed = this.#parts.driver.trashed(grant).find((one) => one.trashId === trashId);
        if (trashed !== undefined) return { origin: `${grant.root}/${trashed.path}`, size: trashed.size };
      }
      throw new FileError("ENOENT", { what: `nothing in the trash has the id ${quotePath(trashId)}`, fix: "use the trashId that the deletion returned" });
    } catch (error) {
      endWith(audit.begin({ taskId, path: trashId, intent: "create" }), error);
      throw error;
    }
  }
}

/** Programs without types call this as well. */
function isContent(content: unknown): content is FileContent {
  return typeof content === "string" || content instanceof Uint8Array || (typeof content === "object" && content !== null && Symbol.asyncIterator in content);
}

function parseRequest<T>(schema: z.ZodType<T>, written: unknown): T {
  const parsed = schema.safeParse(written);
  if (parsed.success) return parsed.data;
  throw new UsageError(parsed.error.issues.map(({ path, message }) => ({ what: `the request is malformed at ${path.map(String).join(".") || "its top"}: ${message}` })));
}

/** Parses a request to a method that serves certain intents only. */
function parseFor<T extends { intent: Intent }>(schema: z.ZodType<T>, written: unknown, intents: readonly Intent[]): T {
  const request = parseRequest(schema, written);
  if (intents.includes(request.intent)) return request;
  throw new UsageError({ what: `the intent ${request.intent} does not fit this operation`, expected: intents.join(" or ") });
}

function limit(content: FileContent, size: number | undefined, path: string): FileContent {
  return typeof content === "string" || content instanceof Uint8Array || size === undefined ? content : limitStream(content, size, path);
}

/** A directory and a link have none that say anything to a human. */
function hasBytes({ kind }: Located): boolean {
  return kind === "file" || kind === "missing";
}
