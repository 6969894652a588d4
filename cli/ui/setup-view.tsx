import { Box, Text } from "ink";
import type { ReactNode } from "react";
import { escapeUnseen } from "../../policy/parsed.ts";
import { readSetup, type SetupState } from "./setup-state.ts";

type Props = { state: SetupState; useColor: boolean };

/** Hosts of a preset that its preview names. */
const PREVIEW = 8;

/** The question that is asked now. Everything is told in words and signs; colour only repeats it. */
export function SetupView({ state, useColor }: Props): ReactNode {
  const [title, keys] = HEADS[state.step];
  return (
    <Box flexDirection="column">
      <Text bold>{title}</Text>
      <Body state={state} useColor={useColor} />
      <Text dimColor={useColor}>{keys}</Text>
    </Box>
  );
}

const HEADS: Readonly<Record<SetupState["step"], [string, string]>> = {
  existing: ["There is a configuration already", "Enter: make a new one in its place · Esc: leave it as it is"],
  agent: ["Which agent starts when none is named?", "↑↓: choose · Enter: go on · Esc: leave, nothing is written"],
  presets: ["Which sets of hosts may it reach, beside the default ones?", "↑↓: look · Space: choose · Enter: go on · ←: back · Esc: leave"],
  hosts: ["Further hosts, one by one, such as api.example.com or git.example.com:22", "Enter: add · Enter on an empty line: go on · Backspace: remove · ←: back · Esc: leave"],
  topology: ["Where shall the firewall run?", "↑↓: choose · Enter: go on · ←: back · Esc: leave"],
  summary: ["This is what the file will say", "Enter: write it · ←: back · Esc: leave, nothing is written"],
};

function Body({ state, useColor }: Props): ReactNode {
  switch (state.step) {
    case "existing":
      return <Lines lines={[state.facts.file, ...shortenFile(state.facts.existing ?? "")]} />;
    case "agent":
      return <Rows state={state} rows={state.facts.agents.map(({ id, title }) => [id, title])} />;
    case "presets":
      return <Presets state={state} useColor={useColor} />;
    case "hosts":
      return <Hosts state={state} useColor={useColor} />;
    case "topology":
      return <Rows state={state} rows={[["container", "in the agent's container; starts faster"], ["sidecar", "in a container of its own; the agent's has no privilege at any time"]]} />;
    case "summary":
      return <Lines lines={[state.facts.file, ...shortenFile(state.facts.render(readSetup(state)))]} />;
  }
}

function Rows({ state: { cursor }, rows, signs }: { state: SetupState; rows: readonly (readonly string[])[]; signs?: readonly string[] }): ReactNode {
  const width = Math.max(...rows.map(([first = ""]) => first.length)) + 2;
  return (
    <Box flexDirection="column">
      {rows.map(([first = "", second = ""], index) => (
        <Text key={first} wrap="truncate-end">{escapeUnseen(`${index === cursor ? "❯" : " "} ${signs?.[index] ?? ""}${first.padEnd(width)}${second}`)}</Text>
      ))}
    </Box>
  );
}

function Presets({ state, useColor }: Props): ReactNode {
  const { facts, cursor, presets } = state;
  const hosts = facts.presets[cursor]?.hosts ?? [];
  const rest = hosts.length - PREVIEW;
  return (
    <Box flexDirection="column">
      <Rows state={state} rows={facts.presets.map(({ id, title, description }) => [id, `${title}: ${description}`])} signs={facts.presets.map(({ id }) => (presets.includes(id) ? "[x] " : "[ ] "))} />
      <Box paddingLeft={6}>
        <Text dimColor={useColor}>{escapeUnseen(`${hosts.slice(0, PREVIEW).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`)}</Text>
      </Box>
    </Box>
  );
}

function Hosts({ state: { hosts, typed, complaint }, useColor }: Props): ReactNode {
  return (
    <Box flexDirection="column">
      <Lines lines={hosts} />
      <Text>{`❯ ${escapeUnseen(typed)}▏`}</Text>
      {complaint !== undefined && <Text {...(useColor ? { color: "yellow" } : {})}>{`! ${escapeUnseen(complaint)}`}</Text>}
    </Box>
  );
}

function Lines({ lines }: { lines: readonly string[] }): ReactNode {
  return (
    <Box flexDirection="column">
      {lines.map((line, index) => (
        <Text key={`${index} ${line}`}>{`  ${escapeUnseen(line)}`}</Text>
      ))}
    </Box>
  );
}

/** Comments explain what could be written; what counts is the rest. */
function shortenFile(text: string): string[] {
  const lines = text.split("\n").filter((line) => !/^\s*(?:#|$)/.test(line));
  return lines.length > 20 ? [...lines.slice(0, 20), `and ${lines.length - 20} more lines`] : lines;
}
