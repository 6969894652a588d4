import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { verifyChain } from "../../../sandbox/audit-chain.ts";
import type { AuditEntry } from "../../../sandbox/audit-entry.ts";
import { readAuditEntries, readAuditLines } from "../../../sandbox/audit-reader.ts";
import { makeCallback, type Question } from "../../../sandbox/confirmation.ts";
import { Sandbox, type SandboxOptions } from "../../../sandbox/sandbox.ts";
import { countHandles, everything, session } from "./guarded-tree.ts";

/** What every request has in common. */
export const about = { sessionId: session, taskId: "t1" };

/** Contents, which no log may have. */
export const SECRET = "contents that no log may have";

/** A whole guard over a root of its own, its human, and its log. */
export class OpenSandbox {
  readonly place = realpathSync(mkdtempSync(join(tmpdir(), "agentbox-adapter-")));
  readonly root = join(this.place, "root");
  readonly log = join(this.place, ".agentbox/guard", session, "audit.jsonl");
  readonly asked: Question[] = [];
  /** What the human says; a function does something first. */
  answer: unknown = "once";
  readonly sandbox: Sandbox;
  private readonly handlesBefore = countHandles();

  constructor(options: Partial<SandboxOptions> = {}) {
    mkdirSync(join(this.root, "dir"), { recursive: true });
    writeFileSync(this.at("file.txt"), SECRET);
    const human = makeCallback(async (question) => {
      this.asked.push(question);
      return typeof this.answer === "function" ? await this.answer(question) : this.answer;
    });
    this.sandbox = new Sandbox({ sessionId: session, agentboxHome: join(this.place, ".agentbox"), frontEnds: [human], ...options });
    this.sandbox.grant({ root: this.root, access: everything, trash: true });
  }

  at(name: string): string {
    return join(this.root, name);
  }

  entries(): AuditEntry[] {
    return [...readAuditEntries(this.log)];
  }

  /** What the log has of the operations since the session was opened, each as its kind and the words that tell it. */
  story(): string[] {
    return this.entries().flatMap(({ kind, intent, decision, ruleId, answer, outcome, refusal, code }) => {
      if (kind === "request") return [`request ${intent} ${decision ?? "-"} ${ruleId ?? "-"}`];
      if (kind === "confirmation") return [`confirmation ${answer}`];
      return kind === "outcome" ? [`outcome ${outcome}${refusal === undefined ? "" : ` ${refusal}`}${code === undefined ? "" : ` ${code}`}`] : [];
    });
  }

  readLog(): string {
    return readFileSync(this.log, "utf8");
  }

  verify() {
    return verifyChain(readAuditLines(this.log));
  }

  /** Closes everything; throws where the chain does not hold, the log has contents or a handle was left open. */
  async end(): Promise<void> {
    const wrongs = [this.verify().broken === undefined ? [] : "the chain is broken", this.readLog().includes(SECRET) ? "the log has contents" : []].flat();
    try {
      await this.sandbox.close();
    } finally {
      rmSync(this.place, { recursive: true, force: true });
    }
    if (countHandles() !== this.handlesBefore) wrongs.push("a handle was left open");
    if (wrongs.length > 0) throw new Error(wrongs.join(", "));
  }
}
