import { matchesPattern, type Pattern } from "./pattern.ts";

/** When the names below were last looked at. */
export const TELEMETRY_HOSTS_DATE = "2026-11-21";

/**
 * Hosts that only collect: usage figures, error reports, feature experiments. A session works without
 * them, so reports about what was refused leave them out. Whole names and domains of the collectors
 * themselves; a word such as `telemetry` in a name proves nothing, for anybody may choose it.
 */
const DOMAINS: readonly string[] = [
  // Statsig
  "statsig.com",
  "statsigapi.net",
  "featuregates.org",
  "featureassets.org",
  "prodregistryv2.org",
  // Sentry
  "sentry.io",
  // Segment
  "api.segment.io",
  "cdn.segment.com",
  // PostHog, Amplitude, Mixpanel
  "i.posthog.com",
  "app.posthog.com",
  "api2.amplitude.com",
  "api.mixpanel.com",
  // Google
  "google-analytics.com",
  "googletagmanager.com",
];

const NAMES: readonly string[] = [
  // Datadog's intakes
  "http-intake.logs.datadoghq.com",
  "http-intake.logs.us5.datadoghq.com",
  "browser-intake-datadoghq.com",
  "browser-intake-us5-datadoghq.com",
  "instrumentation-telemetry-intake.datadoghq.com",
  // Claude Code
  "statsig.anthropic.com",
  // Codex
  "ab.chatgpt.com",
  // Gemini CLI
  "play.googleapis.com",
  // Copilot CLI and GitHub
  "copilot-telemetry.githubusercontent.com",
  "copilot-telemetry-service.githubusercontent.com",
  "telemetry.business.githubcopilot.com",
  "telemetry.enterprise.githubcopilot.com",
  "telemetry.individual.githubcopilot.com",
  "collector.github.com",
  // Editors
  "default.exp-tas.com",
  "dc.services.visualstudio.com",
  "mobile.events.data.microsoft.com",
  "vortex.data.microsoft.com",
  // Frameworks and tools of a project
  "telemetry.nextjs.org",
  "telemetry.astro.build",
  "telemetry.vercel.com",
  "telemetry.storybook.js.org",
];

const PATTERNS: readonly Pattern[] = DOMAINS.map((suffix) => ({ kind: "apex-and-below", suffix }));
const NAME_SET: ReadonlySet<string> = new Set(NAMES);

/** Tells whether a canonical name belongs to a collector of usage figures or errors. */
export function isTelemetryHost(name: string): boolean {
  return NAME_SET.has(name) || PATTERNS.some((pattern) => matchesPattern(pattern, name));
}
