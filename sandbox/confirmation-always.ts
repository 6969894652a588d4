import { z } from "zod";
import { ConfigError } from "../policy/errors.ts";
import type { Answerer } from "./confirmation.ts";
import { PrivateDirectory } from "./private-directory.ts";

const answerSchema = z.strictObject({ v: z.literal(1), rule: z.string(), fingerprint: z.string().regex(/^[0-9a-f]{64}$/), by: z.enum(["terminal", "callback", "mcp", "queue", "nobody"]), time: z.string() });

/** No session can have this name. */
const PLACE = ["guard", ".always"];

/**
 * Yeses for good, one file each in `~/.agentbox/guard/.always`: several sessions may add some at the same time, and
 * none is lost. Each is tied to the rule as it was written and to the file that it stood in, so a rule that
 * was changed asks again. To take one back, its file is removed. The configuration is left alone, since a project's
 * would have to be trusted anew.
 */
export class AlwaysAnswers {
  private readonly agentboxHome: string;

  constructor(agentboxHome: string) {
    this.agentboxHome = agentboxHome;
  }

  /** Returns who gave the answer for good; undefined where nobody did. */
  find(fingerprint: string): Answerer | undefined {
    return this.within(false, (directory) => {
      const found = directory.read(`${fingerprint}.json`);
      const answer = "content" in found ? answerSchema.safeParse(parseJson(found.content)).data : undefined;
      return answer?.fingerprint === fingerprint ? answer.by : undefined;
    });
  }

  /** Remembers a yes; false where that cannot be written. */
  add({ ruleId, fingerprint, by }: { ruleId: string; fingerprint: string; by: Answerer }): boolean {
    const content = `${JSON.stringify({ v: 1, rule: ruleId, fingerprint, by, time: new Date().toISOString() })}\n`;
    const added = this.within(true, (directory) => directory.add(`${fingerprint}.json`, content));
    return added === true || this.find(fingerprint) !== undefined;
  }

  /** A directory that is not private, or a disk that is full: nothing is remembered, and the human is asked. */
  private within<T>(make: boolean, use: (directory: PrivateDirectory) => T): T | undefined {
    let directory: PrivateDirectory | undefined;
    try {
      directory = PrivateDirectory.open(this.agentboxHome, PLACE, { make });
      return directory === undefined ? undefined : use(directory);
    } catch (error) {
      if (error instanceof ConfigError || (error instanceof Error && "code" in error)) return undefined;
      throw error;
    } finally {
      directory?.close();
    }
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
