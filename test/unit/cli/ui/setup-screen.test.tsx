import { setTimeout as sleep } from "node:timers/promises";
import { render } from "ink-testing-library";
import { describe, expect, test } from "vitest";
import { parseAllowedHost } from "../../../../cli/args-policy.ts";
import { Setup } from "../../../../cli/ui/setup-screen.tsx";
import type { SetupFacts } from "../../../../cli/ui/setup-state.ts";
import { renderConfigTemplate, type TemplateChoices } from "../../../../policy/config-template.ts";

const keys = { enter: "\r", escape: "\u001b", up: "\u001b[A", down: "\u001b[B", left: "\u001b[D", space: " ", interrupt: "\u0003", backspace: "\u007f" };

const facts: SetupFacts = {
  agents: [{ id: "claude", title: "Claude Code" }, { id: "codex", title: "Codex" }],
  presets: [
    { id: "go", title: "Go", description: "modules", hosts: ["proxy.golang.org", "sum.golang.org"] },
    { id: "rust", title: "Rust", description: "crates", hosts: Array.from({ length: 12 }, (_, index) => `h${index}.crates.io`) },
  ],
  file: ".agentbox/config.toml",
  existing: undefined,
  checkHost: parseAllowedHost,
  render: renderConfigTemplate,
};

type Played = { frames: string[]; last: string; ends: (TemplateChoices | undefined)[] };

/** Presses one key after the other and keeps the frame after each. */
async function play(pressed: readonly string[], changed: Partial<SetupFacts> = {}): Promise<Played> {
  const ends: (TemplateChoices | undefined)[] = [];
  const { stdin, lastFrame, unmount, frames: drawn } = render(<Setup facts={{ ...facts, ...changed }} useColor={false} onEnd={(choices) => ends.push(choices)} />);
  const frames: string[] = [];
  // Keys are read from the first effect on.
  await sleep(20);
  for (const key of pressed) {
    const before = drawn.length + ends.length;
    stdin.write(key);
    // Not every key changes what is shown.
    for (let tries = 0; tries < 50 && drawn.length + ends.length === before; tries += 1) await sleep(10);
    frames.push(lastFrame() ?? "");
  }
  unmount();
  return { frames, last: frames.at(-1) ?? "", ends };
}

const { enter, escape, down, left, space, interrupt, backspace } = keys;

describe("setup", () => {
  test("asks for agent, presets, hosts and topology, shows the file, and ends with the choices", async () => {
    const { frames, ends } = await play([down, enter, down, space, enter, "api.example.com", enter, enter, down, enter, enter]);
    expect(frames.at(-2)).toMatch(/This is what the file will say[^]*presets = \["rust"\][^]*"api\.example\.com"[^]*topology = "sidecar"[^]*agent = "codex"/);
    expect(ends).toEqual([{ agent: "codex", presets: ["rust"], allowHosts: ["api.example.com"], topology: "sidecar" }]);
  });

  test("takes nothing but enters for the smallest file", async () => {
    expect((await play([enter, enter, enter, enter, enter])).ends).toEqual([{ agent: "claude", presets: [], allowHosts: [], topology: undefined }]);
  });

  test("shows the hosts of the preset that is looked at", async () => {
    const { frames } = await play([enter, down]);
    expect(frames[0]).toMatch(/proxy\.golang\.org, sum\.golang\.org/);
    expect(frames[1]).toMatch(/h0\.crates\.io[^]*and 4 more/);
  });

  test("takes a preset back", async () => {
    expect((await play([enter, space, space, enter, enter, enter, enter])).ends[0]?.presets).toEqual([]);
  });

  test("says while a host is typed what is wrong with it, and does not take it", async () => {
    const { frames, last } = await play([enter, enter, "https://x.example", enter]);
    expect(frames[2]).toMatch(/! .*https/);
    expect(last).toMatch(/Further hosts[^]*❯ https:\/\/x\.example▏[^]*! /);
  });

  test.each([
    { name: "a name of the local network, with the form to write", text: "db:5432", said: /\{ host = "db", ports = \[5432\], private = true \}/ },
    { name: "every host there is, with the option for that", text: "*", said: /--full-network/ },
  ])("explains $name", async ({ text, said }) => {
    expect((await play([enter, enter, text])).last.replaceAll(/\s+/g, " ")).toMatch(said);
  });

  test("takes several hosts that are pasted at once", async () => {
    const { ends } = await play([enter, enter, "a.example.com\nb.example.com:8443\nc.example.com", enter, enter, enter, enter]);
    expect(ends[0]?.allowHosts).toEqual(["a.example.com", "b.example.com:8443", "c.example.com"]);
  });

  test("removes the last letter, and on an empty line the last host", async () => {
    const { ends } = await play([enter, enter, "a.example.comm", backspace, enter, "b.example.com", enter, backspace, enter, enter, enter]);
    expect(ends[0]?.allowHosts).toEqual(["a.example.com"]);
  });

  test("reads keys that arrive at once one after the other", async () => {
    const { ends } = await play([enter, `${down}${space}${enter}`, `api.example.com${enter}`, enter, enter, enter]);
    expect(ends).toMatchObject([{ presets: ["rust"], allowHosts: ["api.example.com"] }]);
  });

  test("goes back to what was asked before, with what was chosen there", async () => {
    expect((await play([down, enter, left])).last).toMatch(/Which agent[^]*❯ codex/);
  });

  test.each([
    { name: "Escape at the beginning", pressed: [escape] },
    { name: "Ctrl-C among the presets", pressed: [enter, space, interrupt] },
    { name: "Escape in front of the file", pressed: [enter, enter, enter, enter, escape] },
  ])("$name leaves without choices", async ({ pressed }) => {
    expect((await play(pressed)).ends).toEqual([undefined]);
  });

  test("shows a file that is there before anything else, and leaves it by Escape", async () => {
    const existing = '# mine\n[network]\nallow_hosts = ["kept.example.com"]\n';
    const { frames, ends } = await play([space, escape], { existing });
    expect(frames[0]).toMatch(/There is a configuration already[^]*kept\.example\.com/);
    expect(ends).toEqual([undefined]);
  });

  test("shows what a terminal would obey as text", async () => {
    const { frames } = await play([space], { existing: 'a = "\u{9b}2J\u{202e}"' });
    expect(frames[0]).not.toMatch(/[\u{80}-\u{9f}\u{202e}]/u);
  });
});
