import { blockedAnswerSchema, configAnswerSchema, modeSchema, patternsAnswerSchema, reloadAnswerSchema, type ConfigAnswer } from "../../policy/admin-answers.ts";
import { type AllowPlace, commandOf, renderAllowCommand } from "../../policy/allow-command.ts";
import { decisionRecordSchema } from "../../policy/decision-record.ts";
import { UsageError } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import { REASONS } from "../../policy/reason.ts";
import { findStarted } from "../../proxy/admin/started-proxy.ts";
import { findTokenFile } from "../../proxy/admin/token-file.ts";
import { renderAdminUrl } from "../../proxy/standalone/describe-state.ts";
import type { ProxyCommand } from "../args-proxy.ts";
import type { Edge } from "../edge.ts";
import { collectRefusals, type Refusal } from "../log/refusals.ts";
import { renderRefusal } from "./blocked.ts";
import { renderRecord } from "./logs.ts";
import { AdminClient } from "./proxy-admin-client.ts";
import { describePlace, findProxyDirectory } from "./proxy-place.ts";
import { findProxySource, type ProxySource } from "./proxy-source.ts";

type CtlCommand = Extract<ProxyCommand, { verb: "proxy ctl" }>;
type Call = { edge: Edge; client: AdminClient; source: ProxySource; path: string; place: AllowPlace; json: boolean };

/** Serves, but not as its file says, or not all of it. */
const DEGRADED = 1;

/** Asks or tells the proxy that runs by the same configuration, and returns the exit code. */
export async function controlProxy(edge: Edge, { file, request, json }: CtlCommand): Promise<number> {
  const source = findProxySource(edge.host, file);
  const path = source.locate();
  const directory = findProxyDirectory(edge.host.agentboxHome);
  // The file may be broken or name another place by now: what runs is asked where it is.
  const where = findStarted(directory, path) ?? (await source.look()).settings.admin;
  const client = new AdminClient({ where, url: renderAdminUrl(where), tokenFile: findTokenFile(directory, where) });
  const call = { edge, client, source, path, place: describePlace(edge.host, file), json };
  switch (request.op) {
    case "health":
      return await showHealth(call);
    case "config":
      return await showConfig(call);
    case "patterns":
      return await showPatterns(call);
    case "blocked":
      return await showRefusals(call, request.after);
    case "mode":
      return await setMode(call, request.mode);
    case "reload":
      return await reload(call);
    case "allow":
      return await allow(call, request.hosts);
    case "events":
      return await followEvents(call);
  }
}

async function showHealth({ edge: { print }, client, json }: Call): Promise<number> {
  const text = (await client.ask("GET", "/health")).trimEnd();
  const ok = text === "ok";
  await print(json ? `${JSON.stringify({ ok, detail: ok ? null : text.replace(/^degraded: /, "") })}\n` : `${text}\n`);
  return ok ? 0 : DEGRADED;
}

async function showConfig({ edge: { print }, client, json }: Call): Promise<number> {
  const answer = await client.read("GET", "/config", configAnswerSchema);
  await print(json ? `${JSON.stringify(answer, undefined, 2)}\n` : renderConfig(answer));
  return 0;
}

function renderConfig({ version: _version, file, log, mode_overridden: overridden, restart_needed: restart, policy, mitm, ...rest }: ConfigAnswer): string {
  const notes = [...(overridden ? ["# the mode was set by the admin API, until the next reload"] : []), ...(restart.length === 0 ? [] : [`# from the next start on: ${restart.join(", ")}`])];
  return `${[`# ${quotePath(file)}; log in ${quotePath(log)}`, ...notes, "[network_proxy]", ...renderValues(rest), "", "[network_proxy.policy]", ...renderValues(policy), "", "[network_proxy.mitm]", ...renderValues(mitm)].join("\n")}\n`;
}

function renderValues(values: object): string[] {
  return Object.entries(values).map(([key, value]) => (value === null ? `# ${key} is off` : `${key} = ${JSON.stringify(value)}`));
}

async function showPatterns({ edge: { print }, client, json }: Call): Promise<number> {
  const answer = await client.read("GET", "/patterns", patternsAnswerSchema);
  const lines = [...answer.denied.map((pattern) => ({ action: "deny ", ...pattern })), ...answer.allowed.map((pattern) => ({ action: "allow", ...pattern }))];
  const rendered = lines.map(({ action, text, source, until }) => `${action}  ${text}  (${source}${until === null ? "" : `, until ${until}`})\n`).join("");
  await print(json ? `${JSON.stringify(answer, undefined, 2)}\n` : rendered || "No host is allowed.\n");
  return 0;
}

async function showRefusals({ edge: { print }, client, place, json }: Call, after: number | undefined): Promise<number> {
  const answer = await client.read("GET", after === undefined ? "/blocked" : `/blocked?after=${after}`, blockedAnswerSchema);
  if (json) {
    await print(`${JSON.stringify(answer, undefined, 2)}\n`);
    return 0;
  }
  const { refusals } = collectRefusals(answer.blocked, { all: true });
  const lines = refusals.map((refusal) => renderRefusal({ ...refusal, ...findRemedy(refusal, place) }));
  await print(lines.length === 0 ? "Nothing was refused.\n" : `${lines.join("\n")}\n`);
  return 0;
}

/** What allows it is a command about this proxy, and not about boxes. A deny is told of by where it is written. */
function findRemedy({ host, port, reason, advice }: Refusal, place: AllowPlace): Pick<Refusal, "command" | "advice"> {
  const known = REASONS.find((candidate) => candidate === reason);
  if (known === undefined || known === "denied") return { command: null, advice };
  const answer = renderAllowCommand({ host, port, reason: known }, place);
  return { command: commandOf(answer), advice: "advice" in answer ? answer.advice : null };
}

async function setMode({ edge: { print }, client, json }: Call, wanted: "limited" | "full"): Promise<number> {
  const answer = await client.read("POST", "/mode", modeSchema, JSON.stringify({ mode: wanted }));
  await print(json ? `${JSON.stringify(answer)}\n` : `mode ${answer.mode} until the next reload\n`);
  return 0;
}

async function reload({ edge: { print }, client, json }: Call): Promise<number> {
  const answer = await client.read("POST", "/reload", reloadAnswerSchema);
  if (json) {
    await print(`${JSON.stringify(answer)}\n`);
    return 0;
  }
  const lines = [...answer.added.map((text) => `+ ${text}`), ...answer.removed.map((text) => `- ${text}`), ...answer.changed];
  if (answer.cut > 0) lines.push(`${answer.cut} ${answer.cut === 1 ? "connection" : "connections"} cut`);
  if (answer.restart_needed.length > 0) lines.push(`from the next start on: ${answer.restart_needed.join(", ")}`);
  await print(`${lines.length === 0 ? "nothing changed" : lines.join("\n")}\n`);
  return 0;
}

async function allow(call: Call, hosts: readonly string[]): Promise<number> {
  const { client, source, path, edge } = call;
  const { file } = await client.read("GET", "/config", configAnswerSchema);
  if (file !== path) throw new UsageError({ what: `the proxy that runs reads ${quotePath(file)}, and this command means ${quotePath(path)}`, expected: "the same file", fix: "name it by --config, or run this where the proxy was started" });
  await source.allow(hosts);
  edge.say(`${hosts.join(", ")} allowed in ${quotePath(path)}`);
  return await reload(call);
}

async function followEvents({ edge: { print }, client, json }: Call): Promise<number> {
  await client.follow("/events", async (text) => {
    const record = json ? undefined : decisionRecordSchema.safeParse(JSON.parse(text)).data;
    await print(`${record === undefined ? text : renderRecord(record)}\n`);
  });
  return 0;
}
