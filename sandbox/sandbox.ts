import { homedir } from "node:os";
import { join } from "node:path";
import type { SandboxConfig } from "../policy/sandbox-schema.ts";
import { DEFAULT_TIMEOUT } from "../policy/sandbox-words.ts";
import { AuditLogger } from "./audit-logger.ts";
import { AlwaysAnswers } from "./confirmation-always.ts";
import { ConfirmationBroker } from "./confirmation-broker.ts";
import type { FrontEnd } from "./confirmation.ts";
import { GuardError } from "./errors.ts";
import { FileSystemDriver } from "./file-system-driver.ts";
import type { Grant, GrantSpec } from "./grant.ts";
import { GrantManager } from "./grant-manager.ts";
import { PathResolver } from "./path-resolver.ts";
import { PolicyEngine } from "./policy-engine.ts";
import { Quota } from "./quota.ts";
import { SandboxAdapter } from "./sandbox-adapter.ts";
import type { TaskSummary } from "./task-summary.ts";

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

  /** Opens the session and its log. Throws GuardError `audit` where that cannot be written or another process has it, ConfigError for wrong rules. */
  constructor({ sessionId, config = {}, source, frontEnds = [], agentboxHome = join(homedir(), ".agentbox") }: SandboxOptions) {
    const { rules, large, timeout = DEFAULT_TIMEOUT, quota_bytes: bytes, quota_files: files } = config;
    const policy = new PolicyEngine({ rules, large, source });
    const grants = new GrantManager();
    const always = { answers: new AlwaysAnswers(agentboxHome), fingerprint: (ruleId: string) => policy.fingerprint(ruleId) };
    this.sessionId = sessionId;
    this.#grants = grants;
    this.#broker = new ConfirmationBroker({ frontEnds, timeoutMs: timeout * 1000, always });
    this.#audit = new AuditLogger({ directory: join(agentboxHome, "guard", sessionId), session: sessionId });
    this.files = new SandboxAdapter({
      grants,
      resolver: new PathResolver(grants),
      policy,
      broker: this.#broker,
      driver: new FileSystemDriver({ grants, quota: new Quota(() => ({ bytes, files })) }),
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

  /** Ends a task: its entries are on the disk, and what it did is summed up. */
  async endTask(taskId: string): Promise<TaskSummary> {
    return await this.#audit.endTask(taskId);
  }

  /** Ends the session: whoever still waits for an answer gets a no, and all grants end. */
  async close(): Promise<void> {
    this.#broker.forget(this.sessionId);
    this.#grants.endSession(this.sessionId);
    await this.#audit.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #auditOf(sessionId: string): AuditLogger {
    if (sessionId === this.sessionId) return this.#audit;
    throw new GuardError("no-session", "session", { what: `session ${sessionId} is not the one of this guard`, expected: this.sessionId });
  }
}

function listRights({ access, output, hidden, hardLinks, trash }: Grant): string[] {
  return Object.entries({ ...access, output, hidden, hardLinks, trash }).flatMap(([right, given]) => (given ? [right] : []));
}
