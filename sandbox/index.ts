/** The file guard as a library: `import { Sandbox } from "agentbox/sandbox"`; see docs/sandbox.md. */
export { Sandbox, type Granting, type SandboxOptions } from "./sandbox.ts";
export { SandboxAdapter, type SandboxParts } from "./sandbox-adapter.ts";
export { GrantManager } from "./grant-manager.ts";
export type { Grant, GrantSpec } from "./grant.ts";
export { PathResolver } from "./path-resolver.ts";
export { type BatchVerdict, PolicyEngine } from "./policy-engine.ts";
export { ConfirmationBroker } from "./confirmation-broker.ts";
export { type Answer, type FrontEnd, makeCallback, type Question, type Reply } from "./confirmation.ts";
export { openConfirmationQueue } from "./confirmation-queue.ts";
export { FileSystemDriver } from "./file-system-driver.ts";
export { AuditLogger } from "./audit-logger.ts";
export type { TaskSummary } from "./task-summary.ts";
export { FileError, GuardError, type Refusal, REFUSALS } from "./errors.ts";
export type { FileContent, FileRequest, FileResponse, Intent, ListRequest, ListResponse, MoveRequest, RestoreRequest, RiskTag, Verdict, WriteRequest } from "./request.ts";
