import type { ConfigAnswer, PatternsAnswer, ReloadAnswer } from "../../policy/admin-answers.ts";
import { KnownError } from "../../policy/errors.ts";
import type { DocumentWord } from "../../policy/policy-document.ts";
import type { ProxySettings } from "../../policy/proxy-config.ts";
import type { Methods } from "../../policy/use.ts";
import { Access } from "../access/access.ts";
import { Flows } from "../access/flows.ts";
import type { Lookup } from "../access/lookup.ts";
import type { DecisionLog, WrittenLine } from "../log/decision-log.ts";
import { describeConfig, describePatterns } from "./describe-state.ts";
import type { LineFeed } from "./line-feed.ts";
import { buildState, type LiveState, makeAccessPolicy, type StateInput } from "./live-state.ts";
import type { LoadedConfig, ReadConfig } from "./loaded-config.ts";
import { compareStates, findRestartKeys } from "./state-difference.ts";

export type StandaloneParts = {
  loaded: LoadedConfig;
  read: ReadConfig;
  log: DecisionLog;
  logDir: string;
  feed: LineFeed;
  lookup: Lookup;
  /** `--approve`: asks whatever the file says. */
  approve: boolean;
};

/** setTimeout takes no more, and would fire at once. */
const MAX_TIMER_MS = 2_147_483_647;

/** The stand-alone proxy as it is driven: its policy, and everything that replaces it while connections go on. */
export class Standalone {
  readonly access: Access;
  readonly flows: Flows;
  /** The listeners and the interception that this process has. */
  readonly started: ProxySettings;
  private readonly parts: StandaloneParts;
  private state: LiveState;
  private trouble: string | undefined;
  private expiry: NodeJS.Timeout | undefined;
  private reloading: Promise<unknown> = Promise.resolve();

  /** Throws ConfigError for a configuration that makes no policy. */
  constructor(parts: StandaloneParts) {
    this.parts = parts;
    this.started = parts.loaded.settings;
    this.state = buildState({ loaded: parts.loaded, mode: undefined, session: [], started: this.started });
    this.access = new Access({ policy: makeAccessPolicy(this.state, this.started), lookup: parts.lookup, log: parts.log });
    this.flows = new Flows(this.access);
  }

  get settings(): ProxySettings {
    return this.state.loaded.settings;
  }

  /** Paths of the files that the configuration in force was read of. */
  get watched(): readonly string[] {
    return this.state.loaded.watched;
  }

  /** Whether newly refused hosts are asked about. */
  get approves(): boolean {
    return this.parts.approve || this.settings.approve;
  }

  get warnings(): readonly string[] {
    return [...this.settings.warnings, ...this.state.policy.warnings];
  }

  troubles(): readonly string[] {
    return [this.trouble, this.parts.log.failing].filter((text) => text !== undefined);
  }

  describeConfig(): ConfigAnswer {
    return describeConfig(this.state, { started: this.started, logDir: this.parts.logDir, approve: this.approves });
  }

  describePatterns(): PatternsAnswer {
    return describePatterns(this.state);
  }

  recentRefusals(after: number): readonly WrittenLine[] {
    return this.parts.feed.recentRefusals(after);
  }

  listen(take: (line: WrittenLine) => void): () => void {
    return this.parts.feed.listen(take);
  }

  /** Sets the mode until the next reload. */
  setMode(mode: Methods): void {
    const before = this.state;
    this.change({ ...this.input(), mode }, (difference) => {
      this.write("mode-changed", difference.changed.join("; ") || `mode ${before.policy.policy.methods} stays`, difference);
    });
  }

  /** Lets a host through until the process ends, or until a time in Unix ms. */
  allow(word: DocumentWord): void {
    const others = this.state.session.filter(({ text }) => text !== word.text);
    this.change({ ...this.input(), session: [...others, word] }, (difference) => this.write("policy-replaced", "answered at the terminal", difference));
  }

  /**
   * Reads the configuration again: all of it comes into force, or nothing. One reload follows the other. With
   * `onlyChanged` nothing happens, and nothing is written down, where the files say what they said.
   */
  reload(why: string, { onlyChanged = false }: { onlyChanged?: boolean } = {}): Promise<ReloadAnswer> {
    const reloaded = this.reloading.then(async () => await this.reloadNow(why, onlyChanged));
    this.reloading = reloaded.catch(() => undefined);
    return reloaded;
  }

  /** Stops what would go on by itself. */
  stop(): void {
    clearTimeout(this.expiry);
  }

  private async reloadNow(why: string, onlyChanged: boolean): Promise<ReloadAnswer> {
    try {
      const loaded = await this.parts.read();
      if (onlyChanged && this.trouble === undefined && isSame(loaded, this.state.loaded)) return { added: [], removed: [], changed: [], cut: 0, restart_needed: findRestartKeys(this.started, loaded.settings) };
      const { difference, cut } = this.change({ ...this.input(), loaded, mode: undefined }, (found) => {
        const restart = findRestartKeys(this.started, loaded.settings);
        const detail = [why, ...found.changed, ...(restart.length === 0 ? [] : [`${restart.join(", ")} from the next start on`])].join("; ");
        this.write("policy-replaced", detail, found);
      });
      this.trouble = undefined;
      return { ...difference, cut, restart_needed: findRestartKeys(this.started, loaded.settings) };
    } catch (error) {
      // A bug of ours in here is no reason to serve without a policy either.
      this.trouble = `the configuration in force is older than the file, which is refused: ${error instanceof KnownError ? error.message : String(error)}`;
      this.write("policy-refused", `${why}; ${this.trouble}`, { added: [], removed: [] });
      throw error;
    }
  }

  /** Replaces the policy as a whole. What is open and no longer let through is cut before anything else happens. */
  private change(input: StateInput, tell: (difference: ReturnType<typeof compareStates>) => void): { difference: ReturnType<typeof compareStates>; cut: number } {
    const state = buildState(input);
    const difference = compareStates(this.state, state);
    this.state = state;
    this.access.replace(makeAccessPolicy(state, this.started));
    tell(difference);
    const cut = this.flows.judgeAnew();
    this.awaitExpiry();
    return { difference, cut };
  }

  private awaitExpiry(): void {
    clearTimeout(this.expiry);
    const { nextExpiry } = this.state.policy;
    if (nextExpiry === undefined) return;
    const expire = (): void => void this.change(this.input(), (difference) => this.write("policy-replaced", "the time of an answer is over", difference));
    this.expiry = setTimeout(expire, Math.min(Math.max(0, nextExpiry - Date.now()) + 1, MAX_TIMER_MS));
  }

  private input(): StateInput {
    const { loaded, mode, session } = this.state;
    return { loaded, mode, session, started: this.started };
  }

  private write(event: "policy-replaced" | "policy-refused" | "mode-changed", detail: string, { added, removed }: { added: string[]; removed: string[] }): void {
    this.parts.log.write({ kind: "event", event, detail, added, removed });
  }
}

function isSame(one: LoadedConfig, other: LoadedConfig): boolean {
  return one.path === other.path && one.parsed.text === other.parsed.text && one.user?.text === other.user?.text;
}
