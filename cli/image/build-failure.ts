import { stripVTControlCharacters } from "node:util";
import { EngineError } from "../../policy/errors.ts";

type Hint = { pattern: RegExp; fix: string };

/** What failing builds say, the surest signs first: npm tells of a wrong version by these codes alone. */
const hints: readonly Hint[] = [
  { pattern: /\b(?:ETARGET|E404)\b|No matching version/, fix: "correct the version in --agents" },
  { pattern: /certificate|self-signed|\bSSL\b|UNABLE_TO_VERIFY/i, fix: "name the certificates of your site's authority with --ca-file" },
  { pattern: /no space left/i, fix: "free disk space: `agentbox cleanup`, then the engine's own `system prune`" },
  { pattern: /Unable to locate package/i, fix: "correct --package; --package none drops all of them" },
  { pattern: /resolving|ENOTFOUND|EAI_AGAIN|timed? ?out|ETIMEDOUT|ECONNREFUSED|unreachable/i, fix: "see to the network, or to HTTP_PROXY and HTTPS_PROXY, which serve the build" },
];

/** Builders end by repeating the step's whole command, whose own words say nothing about the failure. */
const echo = /The command '\/bin\/sh -c |process "\/bin\/sh -c |while running runtime|^\s*\d* ?\|? ?>>> |^-+$/;

const tailLines = 15;

/** Turns the output of a build that failed at `step` into an error with its last lines and a remedy. */
export function explainBuildFailure(step: string, lines: readonly string[]): EngineError {
  const said = lines.map((line) => stripVTControlCharacters(line).trimEnd()).filter((line) => line !== "" && !echo.test(line));
  const tail = said.slice(-tailLines).join("\n");
  const fix = hints.find(({ pattern }) => pattern.test(tail))?.fix ?? "correct what the last lines name and start again";
  return new EngineError({ what: `the image could not be built${step === "" ? "" : ` (at: ${step.slice(0, 120)})`}; the last lines were:\n${tail}\n`, fix });
}
