import { statfs } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import { EngineError, KnownError } from "../../policy/errors.ts";
import { detectEngine } from "../engine/detect.ts";
import { type Engine, type EngineKind, engineKinds } from "../engine/engine.ts";
import { hasImage } from "../engine/images.ts";
import { inspectNetwork } from "../engine/network.ts";
import { canProgram } from "../engine/probe.ts";
import type { Host } from "../host.ts";
import { nameImage } from "../image/ensure-image.ts";
import { changeImageSettings, readImageSettings } from "../image/settings.ts";
import { isGone } from "../session/owner.ts";
import { chooseUser } from "../session/box-user.ts";
import { readSessions } from "../session/session-record.ts";
import { readSessionStatus } from "../session/session-status.ts";
import { readSite } from "./site.ts";

/** One thing that was looked at. A `note` is worth knowing and stops nothing. */
export type Finding = { state: "ok" | "note" | "problem"; subject: string; text: string; fix?: string | undefined };

/** Images, agents and package caches take about this much. */
const roomBytes = 5 * 1024 ** 3;

/** Looks at everything that a box needs of this machine. */
export async function examine(host: Host, requested: EngineKind | undefined): Promise<Finding[]> {
  const { findings, engine } = await examineEngines(host, requested);
  const rest = await Promise.all([
    ...(engine === undefined ? [] : [attempt("image", () => examineImage(host, engine)), attempt("network", () => examineNetwork(engine))]),
    attempt("site", async () => examineSite(host)),
    attempt("room", () => examineRoom(host)),
    attempt("sessions", () => examineSessions(host)),
  ]);
  return [{ state: "ok", subject: "node", text: process.versions.node }, ...findings, ...rest.flat()];
}

async function examineEngines(host: Host, requested: EngineKind | undefined): Promise<{ findings: Finding[]; engine: Engine | undefined }> {
  const findings: Finding[] = [];
  let first: Engine | undefined;
  for (const kind of requested === undefined ? engineKinds : [requested]) {
    try {
      const engine = await detectEngine({ requested: kind, env: host.env });
      findings.push({ state: "ok", subject: kind, text: `${engine.version}${engine.rootless ? ", rootless" : ""}${first === undefined ? ", used" : ""}` });
      first ??= engine;
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      const [complaint] = error.complaints;
      findings.push({ state: "note", subject: kind, text: complaint?.what ?? error.message, fix: complaint?.fix });
    }
  }
  // One engine is enough; only when there is none is each one's trouble a problem.
  if (first !== undefined) return { findings, engine: first };
  return { findings: findings.map((finding) => ({ ...finding, state: "problem" })), engine: undefined };
}

async function examineImage(host: Host, engine: Engine): Promise<Finding[]> {
  const remembered = await readImageSettings(host.agentboxHome);
  const wish = { agents: undefined, packages: undefined, base: undefined, caFile: undefined };
  const settings = changeImageSettings(remembered, { wish, agent: undefined, epoch: undefined });
  const { certificates } = readSite(host, settings.caFile);
  const { tag } = await nameImage({ root: host.root, settings, certificates, user: chooseUser(host, engine) });
  if (!(await hasImage(engine, tag))) return [{ state: "note", subject: "image", text: `${tag} is not built yet`, fix: "the first start builds it; agentbox --rebuild does so now" }];
  const image: Finding = { state: "ok", subject: "image", text: `${tag}, agents: ${settings.agents.join(" ") || "none"}` };
  return [image, await examineKernel(engine, tag)];
}

/** The engine's kernel is not always this machine's: a box is asked, not /proc. */
async function examineKernel(engine: Engine, tag: string): Promise<Finding> {
  const [sets, tables] = await Promise.all([canProgram(engine, tag, "ipset"), canProgram(engine, tag, "nft")]);
  const subject = "kernel";
  if (sets) return { state: "ok", subject, text: "ipset works in a box" };
  if (tables) return { state: "ok", subject, text: "nftables works in a box, ipset does not; its own sets are used" };
  return { state: "problem", subject, text: "neither ipset nor nftables can be programmed in a box", fix: "give the engine's kernel ip_set and xt_set, or nf_tables, and let containers have NET_ADMIN" };
}

async function examineNetwork(engine: Engine): Promise<Finding[]> {
  const { name, ipv6, gateways } = await inspectNetwork(engine, engine.defaultNetwork);
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const global = addresses.some(({ family, address, internal }) => family === "IPv6" && !internal && !address.startsWith("fe80:"));
  const ipv6Text = ipv6 ? "IPv4 and IPv6" : `IPv4 only${global ? ", although this machine has IPv6: boxes start with IPv6 off" : ""}`;
  return [{ state: "ok", subject: "network", text: `${name}, gateway ${gateways.join(" ") || "unknown"}, ${ipv6Text}` }];
}

function examineSite(host: Host): Finding[] {
  const { notices } = readSite(host, null);
  if (notices.length === 0) return [{ state: "ok", subject: "site", text: "no authority and no proxy of its own" }];
  return notices.map((text) => ({ state: "note", subject: "site", text }));
}

async function examineRoom(host: Host): Promise<Finding[]> {
  const { bavail, bsize } = await statfs(host.home);
  const free = bavail * bsize;
  const text = `${(free / 1024 ** 3).toFixed(1)} GB free`;
  if (free >= roomBytes) return [{ state: "ok", subject: "room", text }];
  return [{ state: "problem", subject: "room", text, fix: "free disk space: an image takes 2 to 5 GB; `agentbox cleanup` removes superseded ones" }];
}

async function examineSessions(host: Host): Promise<Finding[]> {
  const sessions = (await readSessions(host.agentboxHome)).filter(({ record }) => record.ended === null);
  const troubled = await Promise.all(sessions.map(async ({ directory, record }) => ({ id: record.id, status: await readSessionStatus(directory) })));
  const degraded = troubled.flatMap(({ id, status }): Finding[] => (status === undefined ? [] : status.degraded.map((text) => ({ state: "note", subject: "sessions", text: `${id} goes on with its policy of before: ${text}` }))));
  const gone = await Promise.all(sessions.map(({ record }) => isGone(record.owner)));
  const killed = gone.filter(Boolean).length;
  const running = sessions.length - killed;
  if (killed === 0) return [{ state: "ok", subject: "sessions", text: `${running} running` }, ...degraded];
  return [...degraded, { state: "note", subject: "sessions", text: `${running} running, ${killed} killed`, fix: "the next start, or agentbox cleanup, clears them" }];
}

/** A check that fails is itself a finding, and the others still run. */
async function attempt(subject: string, check: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await check();
  } catch (error) {
    if (!(error instanceof KnownError)) throw error;
    return error.complaints.map(({ what, fix }) => ({ state: "problem", subject, text: what, fix }));
  }
}

/** Renders findings as a table, a remedy below what needs one. */
export function renderFindings(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ subject }) => subject.length));
  const lines = findings.flatMap(({ state, subject, text, fix }) => [
    `${state.padEnd(7)}  ${subject.padEnd(width)}  ${text}`,
    ...(fix === undefined ? [] : [`${" ".repeat(width + 11)}fix: ${fix}`]),
  ]);
  return `${lines.join("\n")}\n`;
}
