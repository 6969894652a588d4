import { z } from "zod";
import { type Complaint, UsageError } from "../../policy/errors.ts";
import { quote } from "../../policy/parsed.ts";
import { questionSchema } from "../../sandbox/confirmation-file.ts";
import { answerPrompt, readInbox, removeStale, type WaitingPrompt } from "../../sandbox/confirmation-inbox.ts";
import type { ConfirmCommand } from "../args-confirm.ts";
import type { Edge } from "../edge.ts";
import { openConfirmTerminal } from "../ui/confirm-terminal.ts";
import { describePrompt, flatten, makeOnlyChoice, showPath } from "../ui/confirm-text.ts";

type Approve = Extract<ConfirmCommand, { verb: "confirm approve" }>;

/** The prompt was not answered by this command. */
const NOT_ANSWERED = 1;

/** The answer of `agentbox confirm list --json`. The nonce is nobody's to see. */
export const waitingSchema = z.strictObject({
  version: z.literal(1),
  prompts: z.array(questionSchema.omit({ v: true, nonce: true }).extend({ stale: z.boolean() })),
});

/** Performs one command about what the file guard asks, and returns its exit code. */
export async function answerConfirm(edge: Edge, command: ConfirmCommand): Promise<number> {
  switch (command.verb) {
    case "confirm list":
      return await listPrompts(edge, command.json);
    case "confirm approve":
      return await approve(edge, command);
    case "confirm deny":
      return await send(edge, findPrompt(edge, command.prompt), "deny");
  }
}

/** Shows what waits. What a session that is gone has asked is shown once more, as such, and then removed. */
async function listPrompts({ host, print, say }: Edge, json: boolean): Promise<number> {
  const { prompts, problems } = readInbox(host.agentboxHome);
  for (const problem of problems) say(problem);
  if (json) {
    const listed = prompts.map(({ question: { v: _v, nonce: _nonce, ...rest }, stale }) => ({ ...rest, stale }));
    await print(`${JSON.stringify(waitingSchema.parse({ version: 1, prompts: listed }))}\n`);
  } else if (prompts.length === 0) {
    await print("Nothing waits for an answer.\n");
  } else {
    await print(prompts.map((waiting) => `${renderPrompt(waiting)}\n`).join(""));
  }
  removeStale(host.agentboxHome, prompts);
  return 0;
}

function renderPrompt({ question, stale }: WaitingPrompt): string {
  const { id, sessionId, intent, path, destination, verdict, created, timeoutMs } = question;
  const left = Math.max(0, Math.round((Date.parse(created) + timeoutMs - Date.now()) / 1000));
  const state = stale ? "stale: the session is gone" : `${left} s left`;
  return [id, `session ${sessionId}`, `${intent} ${showPath(path)}${destination === undefined ? "" : ` to ${showPath(destination)}`}`, flatten(verdict.ruleId), state].join("  ");
}

async function approve(edge: Edge, { prompt, scope }: Approve): Promise<number> {
  const waiting = findPrompt(edge, prompt);
  const { question } = waiting;
  if (!question.scopes.includes(scope)) {
    const option = scope === "rule" ? "--always" : `--${scope}`;
    throw new UsageError({ what: `${option} is no answer to what ${flatten(question.verdict.ruleId)} asks`, expected: "a rule of the configuration that asks about nothing the guard asks by itself", fix: "leave the option out, or write --session" });
  }
  const terminal = openConfirmTerminal(edge.host.env);
  if (terminal === undefined) throw new UsageError({ what: "a yes is asked for on a terminal, and there is none", expected: "a terminal of your own", fix: `open one, and type: agentbox confirm approve ${question.id}` });
  try {
    const reply = await terminal.choose(describePrompt(question), makeOnlyChoice(scope), new AbortController().signal);
    if (reply === scope) return await send(edge, waiting, scope);
    edge.say(`nothing was approved; ${question.id} waits on, until it is over or denied`);
    return NOT_ANSWERED;
  } finally {
    terminal.close();
  }
}

async function send({ host, print, say }: Edge, waiting: WaitingPrompt, reply: "once" | "session" | "rule" | "deny"): Promise<number> {
  const { id } = waiting.question;
  const outcome = answerPrompt(host.agentboxHome, waiting, reply);
  if (outcome === "done") {
    await print(`${id} ${reply === "deny" ? "denied" : "approved"}.\n`);
    return 0;
  }
  say(outcome === "gone" ? `${id} does not wait any more, or is not what was shown; nothing was answered` : `${id} has an answer already`);
  return NOT_ANSWERED;
}

/** Finds the one prompt that is meant. Throws UsageError where there is none, or more than one. */
function findPrompt({ host, say }: Edge, word: string): WaitingPrompt {
  const { prompts, problems } = readInbox(host.agentboxHome);
  for (const problem of problems) say(problem);
  const slash = word.indexOf("/");
  const [session, id] = slash === -1 ? [undefined, word] : [word.slice(0, slash), word.slice(slash + 1)];
  const own = prompts.filter(({ question }) => session === undefined || question.sessionId === session);
  const exact = own.filter(({ question }) => question.id === id);
  const named = exact.length > 0 ? exact : own.filter(({ question }) => id !== "" && question.id.startsWith(id));
  const [only] = named;
  if (only === undefined || named.length > 1) throw new UsageError(describeMissing(word, named));
  if (!only.stale) return only;
  removeStale(host.agentboxHome, [only]);
  throw new UsageError({ what: `${quote(word)} is stale: session ${only.question.sessionId}, which asked, is gone`, expected: "a prompt that waits", fix: "agentbox confirm list shows what waits" });
}

function describeMissing(word: string, named: readonly WaitingPrompt[]): Complaint {
  if (named.length === 0) return { what: `no prompt ${quote(word)} waits`, expected: "the id of a prompt", fix: "agentbox confirm list shows what waits" };
  return { what: `${quote(word)} may be ${named.map(({ question }) => `${question.sessionId}/${question.id}`).join(" or ")}`, expected: "one prompt", fix: "write SESSION/ID" };
}
