import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Answer, Prompt } from "../../../sandbox/confirmation.ts";
import { ConfirmationBroker } from "../../../sandbox/confirmation-broker.ts";
import { readInbox, type WaitingPrompt } from "../../../sandbox/confirmation-inbox.ts";
import { openConfirmationQueue, type QueueFrontEnd } from "../../../sandbox/confirmation-queue.ts";

/** A home directory of the guard's with queues in it. */
export class QueueHome {
  readonly top = mkdtempSync(path.join(tmpdir(), "agentbox-confirm-"));
  readonly home = path.join(this.top, ".agentbox");
  private readonly open: QueueFrontEnd[] = [];

  constructor() {
    mkdirSync(this.home, { mode: 0o700 });
  }

  /** A path below the guard's directory. */
  place(...names: readonly string[]): string {
    return path.join(this.home, "guard", ...names);
  }

  async openQueue(sessionId = "s1"): Promise<QueueFrontEnd> {
    const queue = await openConfirmationQueue({ agentboxHome: this.home, sessionId });
    this.open.push(queue);
    return queue;
  }

  async makeBroker(sessionId = "s1", timeoutMs = 60_000): Promise<ConfirmationBroker> {
    return new ConfirmationBroker({ frontEnds: [await this.openQueue(sessionId)], timeoutMs });
  }

  /** Waits until so many prompts wait. */
  async awaitPrompts(count: number): Promise<readonly WaitingPrompt[]> {
    for (;;) {
      const { prompts } = readInbox(this.home);
      if (prompts.length === count) return prompts;
      await sleep(10);
    }
  }

  async awaitPrompt(): Promise<WaitingPrompt> {
    const [only] = await this.awaitPrompts(1);
    if (only === undefined) throw new Error("no prompt");
    return only;
  }

  /** Asks, and lets `act` do something about the prompt. */
  async askAnd(act: (waiting: WaitingPrompt) => void): Promise<Answer> {
    const broker = await this.makeBroker();
    const answer = broker.confirm(makePrompt());
    act(await this.awaitPrompt());
    return await answer;
  }

  remove(): void {
    for (const { close } of this.open) close();
    rmSync(this.top, { recursive: true, force: true });
  }
}

export function makePrompt(more: Partial<Prompt> = {}): Prompt {
  return { id: "p1", sessionId: "s1", taskId: "t1", root: "/srv/work", intent: "delete", path: "/srv/work/a", verdict: { decision: "confirm", ruleId: "invariant:delete", tags: ["delete"], reason: "why" }, ...more };
}

/** What `agentbox confirm approve` writes. */
export function rightAnswer({ question: { id, nonce }, digest }: WaitingPrompt): object {
  return { v: 1, id, nonce, question: digest, reply: "once" };
}

/** Whole at once, since the queue is looked at all the time. */
export function writePrivate(file: string, content: string): void {
  writeFileSync(`${file}.draft`, content, { mode: 0o600 });
  renameSync(`${file}.draft`, file);
}
