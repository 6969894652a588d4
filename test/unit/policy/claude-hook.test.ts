import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hookAnswerSchema, parseHookInput, renderHookAnswer } from "../../../policy/claude-hook.ts";

/** As Claude Code writes it, with keys that have no meaning here. */
const input = (tool: string, toolInput: unknown, more: object = {}): string =>
  JSON.stringify({ session_id: "s", transcript_path: "/x.jsonl", cwd: "/project", permission_mode: "default", hook_event_name: "PreToolUse", tool_name: tool, tool_input: toolInput, tool_use_id: "toolu_1", ...more });

describe("what a hook is asked", () => {
  test.each<[string, string, object]>([
    ["a command of Bash", input("Bash", { command: "curl x", description: "d", timeout: 1 }), { asked: { script: "curl x" }, cwd: "/project" }],
    ["a URL of WebFetch", input("WebFetch", { url: "https://a.example:8443/x", prompt: "p" }), { asked: { needs: [{ kind: "host", program: "WebFetch", host: "a.example", port: 8443, form: "url", web: "https" }] } }],
    ["a URL that leads nowhere", input("WebFetch", { url: "about:blank" }), { asked: { needs: [] } }],
    ["another tool", input("Read", { file_path: "/x" }), { asked: undefined }],
    ["a tool without an input", input("Glob", {}), { asked: undefined }],
    ["a call without a directory", input("Bash", { command: "x" }, { cwd: undefined }), { asked: { script: "x" }, cwd: undefined }],
  ])("may be about %s", (_row, text, expected) => {
    expect(parseHookInput(text)).toMatchObject(expected);
  });

  test.each<[string, string]>([
    ["nothing", ""],
    ["no JSON", "{"],
    ["JSON of something else", "[1]"],
    ["an input without a tool", input("Bash", undefined)],
    ["a tool whose name is no text", JSON.stringify({ hook_event_name: "PreToolUse", tool_name: 1, tool_input: {} })],
    ["another event", input("Bash", { command: "x" }, { hook_event_name: "PostToolUse" })],
    ["Bash without a command", input("Bash", { cmd: "x" })],
    ["a command that is no text", input("Bash", { command: ["x"] })],
    ["WebFetch without a URL", input("WebFetch", { url: null })],
  ])("is not understood: %s", (_row, text) => {
    expect(parseHookInput(text)).toEqual({ flaw: expect.any(String) });
  });

  test("is read without an exception whatever it is", () => {
    const texts = fc.oneof(fc.string({ unit: "binary" }), fc.json(), fc.json().map((text) => `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":${text}}`));
    fc.assert(
      fc.property(texts, (text) => {
        expect(Object.keys(parseHookInput(text)).join()).toMatch(/^(?:flaw|asked,cwd)$/);
      }),
    );
  });
});

test("the answer is a refusal of the documented form, on one line", () => {
  const text = renderHookAnswer(["a", "b"]);
  expect(text).toMatch(/^[^\n]+\n$/);
  expect(hookAnswerSchema.parse(JSON.parse(text))).toEqual({ hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "deny", permissionDecisionReason: "a\nb" } });
});
