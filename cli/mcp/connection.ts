import type { Readable, Writable } from "node:stream";
import { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import type { SandboxConfig } from "../../policy/sandbox-schema.ts";
import type { Elicit } from "./call.ts";
import { deleteTool, directoryTool, moveTool, restoreTool } from "./change-tools.ts";
import { endTaskTool, listTool, previewTool } from "./look-tools.ts";
import { readTool } from "./read-tool.ts";
import { MessageLines } from "./message-lines.ts";
import { registerResources, renderGrants } from "./resources.ts";
import { type Guard, registerTool } from "./tool.ts";
import { writeTool } from "./write-tool.ts";

/** One message, and with it what write_file takes: base64 of about 12 MiB. */
const MAX_MESSAGE = 16 * 1024 * 1024;
/** More than a stream gives at once. */
const MAX_PIECE = 1024 * 1024;
/** A client that sends nonsense shall not fill the terminal of its user. */
const MAX_COMPLAINTS = 20;
const MAX_COMPLAINT = 300;

export type Served = {
  guard: Guard;
  config: SandboxConfig;
  version: string;
  /** Whether a form of the client counts as a human's answer: not where the agent itself may be the client. */
  believesClient: boolean;
  say: (line: string) => void;
};

/** A client that is served; `closed` when it is gone, `close` sends it away. */
export type Connection = { closed: Promise<void>; close: () => Promise<void> };

/** Serves one client on a pair of streams. Its end takes back every call that goes on, and every question of those. */
export async function openConnection({ input, output }: { input: Readable; output: Writable }, { guard, config, version, believesClient, say }: Served): Promise<Connection> {
  const instructions = `Files of the user, through a guard: use these tools for the folders below. What is refused says why and what to do; what is risky waits for a human, so a call may take minutes.\n${renderGrants(guard.sandbox.listGrants())}`;
  const server = new McpServer({ name: "agentbox", title: "AgentBox file guard", version }, { instructions });
  const elicitOf = (): Elicit | undefined => {
    const offered = believesClient ? server.server.getClientCapabilities()?.elicitation : undefined;
    return offered?.form === undefined ? undefined : async (form, options) => await server.server.elicitInput(form, options);
  };
  const parts = { guard, elicitOf };
  registerTool(server, readTool, parts);
  registerTool(server, writeTool, parts);
  registerTool(server, listTool, parts);
  registerTool(server, moveTool, parts);
  registerTool(server, deleteTool, parts);
  registerTool(server, directoryTool, parts);
  registerTool(server, restoreTool, parts);
  registerTool(server, previewTool, parts);
  registerTool(server, endTaskTool, parts);
  registerResources(server, { sandbox: guard.sandbox, config });
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  let complaints = 0;
  const complain = ({ message }: Error): void => {
    complaints += 1;
    if (complaints <= MAX_COMPLAINTS) say(`the client: ${message.slice(0, MAX_COMPLAINT)}`);
  };
  Object.assign(server.server, { onclose: resolve, onerror: complain });
  const lines = input.pipe(new MessageLines(MAX_MESSAGE));
  // What comes here is whole, and may be followed by the beginning of nothing.
  await server.connect(new StdioServerTransport(lines, output, { maxBufferSize: MAX_MESSAGE + MAX_PIECE }));
  input.once("close", () => lines.end());
  return { closed, close: async () => await server.close() };
}
