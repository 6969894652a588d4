import type { TOPOLOGIES } from "../../policy/config-schema.ts";
import type { TemplateChoices } from "../../policy/config-template.ts";
import { renderComplaint } from "../../policy/errors.ts";
import type { Parsed } from "../../policy/parsed.ts";

type Topology = (typeof TOPOLOGIES)[number];

/** What the screen of a setup needs to know; it asks for the rest. */
export type SetupFacts = {
  agents: readonly { id: string; title: string }[];
  presets: readonly { id: string; title: string; description: string; hosts: readonly string[] }[];
  /** Name of the file that is going to be written. */
  file: string;
  /** The text that is there already; undefined where there is none. */
  existing: string | undefined;
  /** Judges a host as it is typed, and returns it in canonical form. */
  checkHost: (text: string) => Parsed<string>;
  /** The file as it would be written. */
  render: (choices: TemplateChoices) => string;
};

export type SetupStep = "existing" | "agent" | "presets" | "hosts" | "topology" | "summary";

/** Where the questions are. `cursor` counts the rows of the list that is shown. */
export type SetupState = {
  facts: SetupFacts;
  step: SetupStep;
  cursor: number;
  agent: number;
  presets: readonly string[];
  hosts: readonly string[];
  typed: string;
  /** What is wrong with what is typed; shown at once. */
  complaint: string | undefined;
  topology: Topology;
  end: "saved" | "left" | undefined;
};

export type SetupAction = { kind: "up" | "down" | "toggle" | "next" | "back" | "erase" | "leave" } | { kind: "text"; text: string };

const TOPOLOGY_ROWS: readonly Topology[] = ["container", "sidecar"];

/** Begins with the question about the file that is there, where there is one. */
export function beginSetup(facts: SetupFacts): SetupState {
  return { facts, step: facts.existing === undefined ? "agent" : "existing", cursor: 0, agent: 0, presets: [], hosts: [], typed: "", complaint: undefined, topology: "container", end: undefined };
}

/** Returns the state after a key. */
export function applySetup(state: SetupState, action: SetupAction): SetupState {
  switch (action.kind) {
    case "leave":
      return { ...state, end: "left" };
    case "up":
      return { ...state, cursor: Math.max(0, state.cursor - 1) };
    case "down":
      return { ...state, cursor: Math.min(countRows(state) - 1, state.cursor + 1) };
    case "toggle":
      return state.step === "presets" ? togglePreset(state) : state;
    case "text":
      return state.step === "hosts" ? typeText(state, action.text) : state;
    case "erase":
      return state.step === "hosts" ? eraseText(state) : state;
    case "back":
      return goBack(state);
    case "next":
      return goOn(state);
  }
}

/** What was chosen, for the file. */
export function readSetup({ facts, agent, presets, hosts, topology }: SetupState): TemplateChoices {
  return { agent: facts.agents[agent]?.id, presets, allowHosts: hosts, topology: topology === "container" ? undefined : topology };
}

function countRows({ step, facts }: SetupState): number {
  if (step === "agent") return facts.agents.length;
  if (step === "presets") return facts.presets.length;
  return step === "topology" ? TOPOLOGY_ROWS.length : 1;
}

function togglePreset(state: SetupState): SetupState {
  const { facts, cursor, presets } = state;
  const id = facts.presets[cursor]?.id;
  if (id === undefined) return state;
  const chosen = new Set(presets);
  if (!chosen.delete(id)) chosen.add(id);
  return { ...state, presets: facts.presets.map((preset) => preset.id).filter((known) => chosen.has(known)) };
}

/** What is pasted may be several hosts: all but the last are taken as if each had been confirmed. */
function typeText(state: SetupState, text: string): SetupState {
  const words = `${state.typed}${text.replaceAll(/[^\S\n\r]*[\n\r]+[^\S\n\r]*/g, " ")}`.split(/\s+/);
  const last = words.pop() ?? "";
  const after = words.filter((word) => word !== "").reduce((current, word) => takeHost({ ...current, typed: word }), { ...state, typed: "" });
  if (after.complaint !== undefined && after.typed !== "") return after;
  return judgeTyped({ ...after, typed: last });
}

function eraseText(state: SetupState): SetupState {
  if (state.typed !== "") return judgeTyped({ ...state, typed: state.typed.replace(/.$/su, "") });
  return { ...state, hosts: state.hosts.slice(0, -1), complaint: undefined };
}

function judgeTyped(state: SetupState): SetupState {
  const answer = state.typed === "" ? undefined : state.facts.checkHost(state.typed);
  return { ...state, complaint: answer === undefined || answer.ok ? undefined : renderComplaint(answer.complaint) };
}

function takeHost(state: SetupState): SetupState {
  const answer = state.facts.checkHost(state.typed);
  if (!answer.ok) return { ...state, complaint: renderComplaint(answer.complaint) };
  return { ...state, typed: "", complaint: undefined, hosts: [...new Set([...state.hosts, answer.value])] };
}

function goOn(state: SetupState): SetupState {
  switch (state.step) {
    case "existing":
      return enter(state, "agent");
    case "agent":
      return enter({ ...state, agent: state.cursor }, "presets");
    case "presets":
      return enter(state, "hosts");
    case "hosts":
      return state.typed === "" ? enter(state, "topology") : takeHost(state);
    case "topology":
      return enter({ ...state, topology: TOPOLOGY_ROWS[state.cursor] ?? "container" }, "summary");
    case "summary":
      return { ...state, end: "saved" };
  }
}

const ORDER: readonly SetupStep[] = ["existing", "agent", "presets", "hosts", "topology", "summary"];

function goBack(state: SetupState): SetupState {
  const before = ORDER[ORDER.indexOf(state.step) - 1];
  return before === undefined || (before === "existing" && state.facts.existing === undefined) ? state : enter(state, before);
}

/** A list that is met again shows what was chosen there. */
function enter(state: SetupState, step: SetupStep): SetupState {
  const cursor = step === "agent" ? state.agent : step === "topology" ? TOPOLOGY_ROWS.indexOf(state.topology) : 0;
  return { ...state, step, cursor, typed: "", complaint: undefined };
}
