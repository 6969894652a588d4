import { z } from "zod";
import { isVariableName, parseBase, parsePackage } from "./box-words.ts";
import { addHostIssues, addRuleIssues, addressWord, agentWord, blockWord, criticalWord, judgedString, parseListEntry, plainText, portWord, privateRange, proxyUrl, suggest, variableValue, workspacePath } from "./config-words.ts";
import { parsed, quote, refused } from "./parsed.ts";
import { makeProxySchema } from "./proxy-schema.ts";
import { makeSandboxSchema } from "./sandbox-schema.ts";
import type { PublicSuffixTest } from "./wildcard-check.ts";

/** What judges values beyond their form; what is left out is not asked. */
export type SchemaJudges = { presets?: readonly string[] | undefined; isPublicSuffix?: PublicSuffixTest | undefined };

export const ENFORCEMENTS = ["name", "address"] as const;
export const TOPOLOGIES = ["container", "sidecar"] as const;
const MODES = ["none", "allowlist", "full"] as const;

const port = z.int().min(1).max(65_535);
const ports = z.array(port).min(1);

/**
 * Makes the schema of a configuration file, `.agentbox/config.toml` or `~/.agentbox/config.toml`: the one
 * source of its types, of `agentbox.schema.json` and of what `parseConfig` refuses.
 */
export function makeConfigSchema({ presets, isPublicSuffix }: SchemaJudges = {}) {
  const hostWord = judgedString((text) => parseListEntry(text, isPublicSuffix));
  const hostTable = z
    .strictObject({
      host: z.string().describe("A name, *.name, an address or a CIDR block, without ports."),
      ports: ports.optional().describe("Ports to open; 443 when left out."),
      protocol: z.literal("tcp").optional().describe("The ports speak neither TLS nor HTTP, such as SSH on 443."),
      private: z.boolean().optional().describe("Open what the name resolves to at the start, private addresses as well; dotless names are taken. Needs ports."),
    })
    .check((context) => addHostIssues(context, isPublicSuffix));
  const presetId = judgedString((text) => (presets === undefined || presets.includes(text) ? parsed(text) : refused(`there is no preset ${quote(text)}`, presets.join(", "), suggest(text, presets))));

  const rule = z
    .strictObject({
      domain: z.string().describe("A name, *.name (below it, without the name itself), **.name or *."),
      action: z.enum(["allow", "deny"]),
      ports: ports.optional().describe("When left out, allow opens 80 and 443 (22 too for git hosts) and deny closes all."),
    })
    .check((context) => addRuleIssues(context, isPublicSuffix));

  const network = z
    .strictObject({
      mode: z.enum(MODES).optional().describe("none: no network. allowlist: the firewall, default of this table. full: no firewall."),
      allow_hosts: z.array(z.union([hostWord, hostTable])).optional().describe("Hosts to allow beside the defaults: host, host:port,port, *.host (the host itself included), an address or a CIDR block, or a table."),
      block_hosts: z.array(blockWord).optional().describe("Hosts to deny on all ports, whatever allows them; * stands for any characters."),
      allow_file: plainText.optional().describe("A file of one host a line, relative to this file; # begins a comment."),
      presets: z.array(presetId).optional().describe("Named sets of hosts; `agentbox policy presets` lists them."),
      rules: z.array(rule).optional().describe("Ordered rules; the first that matches decides, before allow_hosts and after block_hosts."),
      policy: z.strictObject({ mode: z.enum(["allow-list", "deny-list", "unrestricted"]).optional().describe("What holds for a host that no rule names.") }).optional(),
      enforcement: z.enum(ENFORCEMENTS).optional().describe("name (default): firewall, resolver, and a proxy that judges the names in HTTP and TLS. address: the first two."),
      ech: z.enum(["allow", "refuse"]).optional().describe("refuse: TLS whose hello may hide its real name. Browsers send such hellos to everybody."),
      topology: z.enum(TOPOLOGIES).optional().describe("container: firewall and agent in one container. sidecar: the firewall in a container of its own."),
      ssh: z.enum(["listed", "any", "off"]).optional().describe("Port 22: to hosts that list it (default), to all, to none."),
      allow_private: z.array(privateRange).optional().describe("CIDR blocks of private addresses that allowed names may lead to."),
      dns: z.array(addressWord).optional().describe("Resolvers that the box's own one asks, instead of the host's."),
      critical: z.array(criticalWord).optional().describe("Names that must resolve and answer or the box does not start, instead of the shipped list."),
      report: z.boolean().optional().describe("Let through what would be refused, and write it down: to find out which hosts are needed."),
      required: z.boolean().optional().describe("Nobody can turn the firewall off. Counts in the user's own file only."),
    })
    .check(judgeBase);

  const box = z.strictObject({
    agent: agentWord.optional().describe("The agent that starts when none is named: NAME or NAME@VERSION."),
    add_dirs: z.array(plainText).optional().describe("Further directories to mount, writable, at their own paths."),
    ports: z.array(portWord).optional().describe("Ports to publish: PORT, HOST:CONTAINER or ADDRESS:HOST:CONTAINER, with /udp for UDP."),
    env: z.record(z.string().check(judgeVariable), variableValue).optional().describe("Variables of the agent."),
    memory: z.string().regex(/^[1-9][0-9]*[bkmg]?$/i).optional().describe("The most memory, such as 2g or 512m."),
    cpus: z.number().positive().max(4096).optional().describe("The most processors, such as 1.5."),
  });

  const workspace = z.strictObject({
    writable: z.array(workspacePath).optional().describe("Paths below the project that are read-only otherwise, such as .vscode."),
  });

  const build = z.strictObject({
    ca_file: plainText.optional().describe("Certificates of a site's own authority, for build and box."),
    proxy: proxyUrl.optional().describe("The site's proxy for the build of the image, http://HOST:PORT."),
    agents: z.array(agentWord).optional().describe("Agents in the image: NAME or NAME@VERSION."),
    packages: z.array(judgedString((text) => parsePackage(text))).optional().describe("Further Debian packages."),
    base: judgedString((text) => parseBase(text)).optional().describe("The image to build on, or local."),
  });

  return z.strictObject({
    network: network.optional().describe("What the box may reach. With this table the firewall is on."),
    box: box.optional().describe("How the agent runs."),
    workspace: workspace.optional().describe("The project's directory in the box."),
    build: build.optional().describe("The image."),
    network_proxy: makeProxySchema(isPublicSuffix).optional().describe("The proxy that judges names: in boxes with enforcement name, and stand-alone as `agentbox proxy`."),
    sandbox: makeSandboxSchema().optional().describe("The file guard: what agents that ask it may do with files."),
  });
}

/** The schema without lists to judge by: types and the JSON schema. */
export const configSchema = makeConfigSchema();

export type Config = z.infer<typeof configSchema>;
export type NetworkConfig = NonNullable<Config["network"]>;

function judgeVariable(context: z.core.ParsePayload<string>): void {
  const { value } = context;
  const message = !isVariableName(value) ? `${quote(value)} is not the name of a variable` : /^AGENTBOX_/i.test(value) ? `${quote(value)} is for the command line` : undefined;
  if (message !== undefined) context.issues.push({ code: "custom", input: value, message, params: { expected: "a name such as LOG_LEVEL" } });
}

/** With the address wall alone a denied name would stay reachable by its address. */
function judgeBase(context: z.core.ParsePayload<{ policy?: { mode?: string | undefined } | undefined; enforcement?: string | undefined }>): void {
  const { policy, enforcement } = context.value;
  if (policy?.mode !== "deny-list" || enforcement !== "address") return;
  context.issues.push({ code: "custom", input: context.value, path: ["policy", "mode"], message: '"deny-list" needs the name wall', params: { expected: 'enforcement = "name"', fix: "take out enforcement, or list the hosts that are needed as allow_hosts" } });
}
