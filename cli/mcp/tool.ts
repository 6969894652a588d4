import type { CallToolResult, McpServer, ToolAnnotations } from "@modelcontextprotocol/server";
import { z } from "zod";
import { KnownError } from "../../policy/errors.ts";
import { FileError } from "../../sandbox/errors.ts";
import { sessionIdSchema } from "../../sandbox/request.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { type Call, type Elicit, makeCall, refuseCancelled, withinCall } from "./call.ts";
import { makeRefusal } from "./tool-result.ts";

/** Each holds what it reads until its answer is sent; a client that starts calls without end shall not fill the memory. */
const MAX_RUNNING = 64;

/** What tools work with. */
export type Guard = {
  sandbox: Sandbox;
  /** Is told of what should not happen; the call is answered, and the server goes on. */
  onBug: (error: unknown) => void;
  /** Calls that go on, which the end of the session waits for. */
  running: Set<Promise<unknown>>;
};

export type Tool<S extends z.ZodType> = {
  name: string;
  title: string;
  description: string;
  input: S;
  annotations: ToolAnnotations;
  run: (args: z.infer<S>, guard: Guard, call: Call) => Promise<CallToolResult>;
};

/** In the arguments of every tool that does something. */
export const taskId = sessionIdSchema.optional().describe("Names the piece of work that this belongs to, for the audit log: letters, digits, dots, dashes and underscores; main when left out.");
export const DEFAULT_TASK = "main";
export const path = z.string().min(1).describe("Absolute, or relative to the first granted folder (agentbox://grants lists them).");

/** Registers a tool. Whatever the guard refuses becomes a result that says why. */
export function registerTool<S extends z.ZodType>(server: McpServer, { name, title, description, input, annotations, run }: Tool<S>, { guard, elicitOf }: { guard: Guard; elicitOf: () => Elicit | undefined }): void {
  server.registerTool<z.ZodType, z.ZodType>(name, { title, description, inputSchema: input, annotations: { title, openWorldHint: false, ...annotations } }, async (args, context) => {
    if (guard.running.size >= MAX_RUNNING) return makeRefusal(new FileError("EAGAIN", { what: `${MAX_RUNNING} calls go on already, of all clients together`, fix: "wait for their answers" }));
    const call = makeCall(context, elicitOf());
    const answer = withinCall(call, async () => await runTool(call, async () => await run(input.parse(args), guard, call), guard.onBug));
    guard.running.add(answer);
    try {
      return await answer;
    } finally {
      guard.running.delete(answer);
    }
  });
}

async function runTool(call: Call, run: () => Promise<CallToolResult>, onBug: Guard["onBug"]): Promise<CallToolResult> {
  try {
    refuseCancelled(call);
    return await run();
  } catch (error) {
    if (error instanceof KnownError) return makeRefusal(error);
    onBug(error);
    return { content: [{ type: "text", text: "The file guard failed by a mistake of its own; nobody knows how far it came. Tell the user." }], isError: true };
  }
}
