import { realpathSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { UsageError } from "../policy/errors.ts";
import { quotePath } from "../policy/parsed.ts";
import type { SandboxConfig } from "../policy/sandbox-schema.ts";
import { DEFAULT_TIMEOUT } from "../policy/sandbox-words.ts";
import { AuditLogger } from "./audit-logger.ts";
import { AlwaysAnswers } from "./confirmation-always.ts";
import { ConfirmationBroker } from "./confirmation-broker.ts";
import type { FrontEnd } from "./confirmation.ts";
import { GuardError } from "./errors.ts";
import { isWithin } from "./forbidden-root.ts";
import { FileSystemDriver } from "./file-system-driver.ts";
import type { Grant, GrantSpec } from "./grant.ts";
import { GrantManager } from "./grant-manager.ts";
import { PathResolver } from "./path-resolver.ts";
import { PolicyEngine } from "./policy-engine.ts";
import { Quota } from "./quota.ts";
import { sessionIdSchema } from "./request.ts";
import { SandboxAdapter } from "./sandbox-adapter.ts";
import type { TaskSummary } from "./task-summary.ts";

/** How long the end of a session waits for what is being done. */
const LAST_MS = 5000;

export type SandboxOptions = {
  /** Names the session: its log and its queue of questions lie in `~/.agentbox/guard/SESSION`. */
  sessionId: string;
  /** Rules, limits and times as `[sandbox]` of a configuration says them; without it the built-in ones. */
  config?: Omit<SandboxConfig, "grants"> | undefined;
  /** Whose rules they are, such as the path of the configuration: what tells a rule from one of the same words elsewhere. */
  source?: string | undefined;
  /** Who is asked, one after the other; without any, everything that has to be asked about is refused. */
  frontEnds?: readonly FrontEnd[] | undefined;
  /** `~/.agentbox` when left out. */
  agentboxHome?: string | undefined;
};

/** What may be granted: `GrantSpec` without its session. */
export type Granting = Omit<GrantSpec, "sessionId">;

/** The guard of one session, with everything that belongs to it; every grant and every operation is in its audit log. */
export class Sandbox implements AsyncDisposable {
  readonly sessionId: string;
  /** The operations. */
  readonly files: SandboxAdapter;
  readonly #grants: GrantManager;
  readonly #audit: AuditLogger;
  readonly #broker: ConfirmationBroker;
  readonly #driver: FileSystemDriver;
  readonly #agentboxHome: string;
  #isClosed = false;

  /** Opens the session and its log. Throws GuardError `audit` where that cannot be written or another process has it, ConfigError for wrong rules. */
  constructor({ sessionId, config = {}, source, frontEnds = [], agentboxHome = join(homedir(), ".agentbox") }: SandboxOptions) {
    if (!sessionIdSchema.safeParse(sessionId).success) throw new UsageError({ what: `${quotePath(sessionId)} is no name of a session`, expected: "one to 64 letters, digits, dots, dashes and underscores" });
    const { rules, large, timeout = DEFAULT_TIMEOUT, quota_bytes: bytes, quota_files: files } = config;
    const policy = new PolicyEngine({ rules, large, source });
    const grants = new GrantManager();
    const always = { answers: new AlwaysAnswers(agentboxHome), fingerprint: (ruleId: string) => policy.fingerprint(ruleId) };
    this.sessionId = sessionId;
    this.#agentboxHome = agentboxHome;
    this.#grants = grants;
    this.#broker = new ConfirmationBroker({ frontEnds, timeoutMs: timeout * 1000, always });
    this.#audit = new AuditLogger({ directory: join(agentboxHome, "guard", sessionId), session: sessionId });
    this.#driver = new FileSystemDriver({ grants, quota: new Quota(() => ({ bytes, files })) });
    this.files = new SandboxAdapter({
      grants,
      resolver: new PathResolver(grants),
      policy,
      broker: this.#broker,
      driver: this.#driver,
      auditOf: (asked) => this.#auditOf(asked),
    });
  }

  /** Hash of the last entry of the log; see `AuditLogger.head`. */
  get head(): string {
    return this.#audit.head;
  }

  /** Grants a folder, and writes that down first. Throws GuardError `not-granted` where it may be no root. */
  grant(granting: Granting): Grant {
    const grant = this.#grants.add({ ...granting, sessionId: this.sessionId });
    this.#keepOwnOut(grant);
    const expires = granting.expires === undefined ? undefined : new Date(Date.now() + granting.expires).toISOString();
    try {
      this.#audit.grant({ grant: grant.id, path: grant.root, rights: listRights(grant), expires });
    } catch (error) {
      this.#grants.revoke(grant.id);
      throw error;
    }
    return grant;
  }

  /** Takes a grant back, for the next operation on. */
  revoke(grant: Grant): void {
    if (this.#grants.revoke(grant.id)) this.#audit.revoke({ grant: grant.id, path: grant.root, rights: listRights(grant) });
  }

  /** The grants that are in force. */
  listGrants(): readonly Grant[] {
    return this.#grants.list(this.sessionId);
  }

  /** Ends a task: what it changed and its entries are on the disk, and what it did is summed up. Throws FileError where the disk lost a name. */
  async endTask(taskId: string): Promise<TaskSummary> {
    await this.#driver.settle();
    return await this.#audit.endTask(taskId);
  }

  /**
   * Ends the session: whoever still waits for an answer gets a no, all grants end, and what is being done is awaited
   * for a while, so that the log tells how it ended. A stream that its caller never ends stays unknown.
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#broker.forget(this.sessionId);
    this.#grants.endSession(this.sessionId);
    await Promise.race([this.files.settled(), setTimeout(LAST_MS, undefined, { ref: false })]);
    try {
      await this.#driver.settle();
    } finally {
      await this.#audit.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #auditOf(sessionId: string): AuditLogger {
    if (sessionId !== this.sessionId) throw new GuardError("no-session", "session", { what: `session ${quotePath(sessionId)} is not the one of this guard`, expected: this.sessionId });
    if (this.#isClosed) throw new GuardError("no-session", "session", { what: `session ${this.sessionId} has ended`, fix: "begin another one" });
    return this.#audit;
  }

  /** Whoever writes the log, the queue or the answers for good judges itself, wherever they lie. */
  #keepOwnOut(grant: Grant): void {
    const own = realpathSync.native(this.#agentboxHome);
    if (!isWithin(own, grant.root) && !isWithin(grant.root, own)) return;
    this.#grants.revoke(grant.id);
    throw new GuardError("not-granted", "root", { what: `${quotePath(grant.root)} cannot be granted: it holds ${quotePath(own)}, the guard's own directory, or lies in it`, fix: "grant the folder that the task needs, not one above it" });
  }
}

function listRights({ access, output, hidden, hardLinks, trash }: Grant): string[] {
  return Object.entries({ ...access, output, hidden, hardLinks, trash }).flatMap(([right, given]) => (given ? [right] : []));
}
