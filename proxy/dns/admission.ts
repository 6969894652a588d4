import { decide, type Decision } from "../../policy/decide.ts";
import { type AnswerChain, encodeChain, readAddress } from "./answer-chain.ts";
import type { DecisionLog, Tally } from "../log/decision-log.ts";
import type { HeldAnswer } from "./held-answer.ts";
import type { LivePolicy } from "../live-policy.ts";
import { collectFacts, judgeAddress, type LineInput, type NameVerdict } from "./name-verdict.ts";
import { bareReply, type ReplyBody } from "./reply.ts";
import type { WireRecord } from "./response.ts";
import type { Learned } from "./resolver.ts";
import type { Question } from "./upstream-question.ts";
import { RCODE, renderType, TYPE } from "./wire.ts";

export type AdmissionInput = {
  live: LivePolicy;
  verdict: NameVerdict;
  question: Question;
  chain: AnswerChain;
  log: DecisionLog;
  /** Straight from the hosts file, for a name that nothing opens: its addresses are what they are. */
  isLocal: boolean;
};

/** What may be answered, and what has to be opened first. */
export type Admission = { held: HeldAnswer; toLearn: readonly Learned[] };

/**
 * Judges an answer by the policy: an alias that leads to a denied name is as if the name itself were
 * denied, and addresses that are special-purpose or denied are left out. Nothing left means no data.
 */
export function admitChain(input: AdmissionInput): Admission {
  const { live, verdict, question, chain, log } = input;
  const denied = findDeniedAlias(input);
  if (denied !== undefined) return refuse(input, denied, RCODE.nameError);
  const isAddress = question.type === TYPE.A || question.type === TYPE.AAAA;
  const judged = isAddress ? chain.records.map((record) => judgeRecord(input, record)) : [];
  const dropped = judged.filter(({ decision }) => decision.action === "deny");
  const [first] = dropped;
  if (first !== undefined && dropped.length === judged.length) return refuse(input, first.decision, RCODE.noError);
  const kept = judged.filter(({ decision }) => decision.action === "allow");
  const records = isAddress ? kept.map(({ record }) => record) : chain.records;
  const body = encodeChain({ ...chain, records }, question.name);
  const texts = kept.map(({ address }) => address.text);
  const detail = first === undefined ? describeEmpty(chain) : `left out: ${dropped.map(({ address }) => address.text).join(", ")}`;
  const type = renderType(question.type);
  const line: LineInput = input.isLocal
    ? { verdict: { ...verdict, action: "allow" }, type, addresses: texts, detail: "from the hosts file; not opened" }
    : { verdict, type, addresses: texts, detail };
  const tally = log.tally(`${verdict.action} ${question.name}`, collectFacts(line));
  const aliasTtl = Math.min(...chain.aliases.map(({ ttl }) => ttl), Number.POSITIVE_INFINITY);
  const toLearn = kept.map(({ record, address }) => ({ address: address.text, ttl: Math.min(record.ttl, aliasTtl) }));
  return { held: holdBody(body, { live, ttl: chain.ttl, tally, partial: first !== undefined }), toLearn };
}

function judgeRecord({ live, verdict, isLocal }: AdmissionInput, record: WireRecord): { record: WireRecord; address: ReturnType<typeof readAddress>; decision: Decision } {
  const address = readAddress(record);
  const decision: Decision = isLocal ? { ...verdict.decision, action: "allow" } : judgeAddress(live.box, verdict, address);
  return { record, address, decision };
}

/** Names that no rule mentions are where aliases usually lead; only a rule that denies one of them counts. */
function findDeniedAlias({ live, chain, verdict, question }: AdmissionInput): Decision | undefined {
  for (const target of [...chain.aliases, ...(question.type === TYPE.CNAME ? chain.records : [])].map((alias) => alias.target ?? "")) {
    const { reason, rule } = decide(live.box.policy, { host: target });
    if (reason === "denied" && rule !== undefined) return { ...verdict.decision, action: "deny", reason, rule, detail: `it is an alias of ${target}` };
  }
  return undefined;
}

function refuse({ live, chain, question, log }: AdmissionInput, decision: Decision, rcode: number): Admission {
  const type = renderType(question.type);
  const tally = log.tally(`${decision.reason} ${question.name}`, collectFacts({ verdict: { action: "deny", decision }, type }));
  return { held: holdBody(bareReply(rcode), { live, ttl: chain.ttl, tally, partial: true }), toLearn: [] };
}

function holdBody({ rcode, answers, records }: ReplyBody, { live, ttl, tally, partial }: { live: LivePolicy; ttl: number; tally: Tally; partial: boolean }): HeldAnswer {
  const born = Date.now();
  // Field by field: spread objects take more memory, and there are many of these.
  return { rcode, answers, records, born, freshUntil: born + ttl * 1000, epoch: live.epoch, tally, partial };
}

function describeEmpty({ rcode, records }: AnswerChain): string | undefined {
  if (rcode === RCODE.nameError) return "the name does not exist";
  return records.length === 0 ? "there is no such record" : undefined;
}
