import { Box, Text } from "ink";
import type { ReactNode } from "react";
import { escapeUnseen } from "../../policy/parsed.ts";
import type { LaunchState, StepState } from "./launch-state.ts";
import type { Theme } from "./theme.ts";

type Props = { state: LaunchState; theme: Theme };

/** The launch screen. Once the box is ready only what the user must know stays: warnings and the ready line. */
export function LaunchView({ state, theme }: Props): ReactNode {
  const { steps, warnings, failure, ready } = state;
  const width = Math.max(0, ...steps.map(({ name }) => escapeUnseen(name).length)) + 2;
  return (
    <Box flexDirection="column">
      {ready === undefined && steps.map((step) => <Step key={step.name} step={step} width={width} theme={theme} />)}
      {warnings.map((text, index) => (
        <Paint key={`${index} ${text}`} color={theme.color.warning}>{`! ${text}`}</Paint>
      ))}
      {failure !== undefined && <Paint color={theme.color.failed}>{failure}</Paint>}
      {ready !== undefined && <Paint color={theme.color.ready}>{`${theme.sign.done} ${ready}`}</Paint>}
    </Box>
  );
}

function Step({ step, width, theme }: { step: StepState; width: number; theme: Theme }): ReactNode {
  return (
    <Box>
      <Paint color={theme.color[step.status]}>{`${theme.sign[step.status]} `}</Paint>
      <Box width={width} flexShrink={0}>
        <Text>{escapeUnseen(step.name)}</Text>
      </Box>
      <Text dimColor={step.status === "done" && theme.color.done !== undefined}>{escapeUnseen(step.text)}</Text>
    </Box>
  );
}

function Paint({ color, children }: { color: string | undefined; children: string }): ReactNode {
  const text = escapeUnseen(children);
  return color === undefined ? <Text>{text}</Text> : <Text color={color}>{text}</Text>;
}
