import { describe, expect, test } from "vitest";
import { type Command, parseCommandLine } from "../../../cli/args.ts";
import { UsageError } from "../../../policy/errors.ts";

const agents = ["claude", "codex"];

function parse(argv: readonly string[], firewall?: string, log?: string): Command {
  return parseCommandLine(argv, { agents, checkPath: () => undefined, firewall, log });
}

function complain(argv: readonly string[], firewall?: string, log?: string): string[] {
  try {
    parse(argv, firewall, log);
  } catch (error) {
    if (error instanceof UsageError) return error.complaints.map(({ what, fix }) => `${what}; ${fix ?? ""}`);
    throw error;
  }
  return [];
}

describe("what is to run", () => {
  test.each([
    { name: "starts the default agent when nothing is written", argv: [], expected: { verb: "start", agent: undefined, args: [] } },
    { name: "starts the agent that is named", argv: ["codex"], expected: { verb: "start", agent: { name: "codex", version: undefined } } },
    { name: "takes a version with the agent", argv: ["codex@1.2.3"], expected: { verb: "start", agent: { name: "codex", version: "1.2.3" } } },
    { name: "passes what follows -- on unchanged", argv: ["claude", "--", "-p", "a b", "--", "$(x)\n", ""], expected: { verb: "start", args: ["-p", "a b", "--", "$(x)\n", ""] } },
    { name: "signs an agent in", argv: ["codex", "login"], expected: { verb: "login", agent: { name: "codex", version: undefined } } },
    { name: "opens a shell", argv: ["shell"], expected: { verb: "shell", admin: false, command: undefined } },
    { name: "opens a root shell", argv: ["shell", "--admin"], expected: { verb: "shell", admin: true } },
    { name: "runs one command in a shell box", argv: ["shell", "--", "ls", "-l"], expected: { verb: "shell", command: ["ls", "-l"] } },
    { name: "runs a command", argv: ["run", "--", "ls"], expected: { verb: "run", command: ["ls"] } },
    { name: "rebuilds with an agent of its own version", argv: ["--rebuild", "codex@2.0.0"], expected: { verb: "rebuild", agent: { name: "codex", version: "2.0.0" } } },
    { name: "takes options before and after the verb", argv: ["-p", "80", "run", "--dry-run", "--", "x"], expected: { verb: "run", command: ["x"] } },
    { name: "shows help of one verb", argv: ["shell", "--help"], expected: { verb: "help", topic: "shell" } },
    { name: "shows the whole help", argv: ["--help"], expected: { verb: "help", topic: undefined } },
    { name: "shows help although the rest is wrong", argv: ["--nonsense", "--help"], expected: { verb: "help" } },
    { name: "shows help of one verb after the word help", argv: ["help", "doctor"], expected: { verb: "help", topic: "doctor" } },
    { name: "shows the whole help after the word help", argv: ["help"], expected: { verb: "help", topic: undefined } },
    { name: "shows help of help", argv: ["help", "help"], expected: { verb: "help", topic: undefined } },
    { name: "shows help of signing in", argv: ["help", "codex", "login"], expected: { verb: "help", topic: "login" } },
    { name: "shows help of signing in by its name alone", argv: ["login", "--help"], expected: { verb: "help", topic: "login" } },
    { name: "shows help of rebuilding by its name", argv: ["help", "rebuild"], expected: { verb: "help", topic: "rebuild" } },
    { name: "shows help of rebuilding by its option", argv: ["help", "--rebuild"], expected: { verb: "help", topic: "rebuild" } },
    { name: "shows help of starting for an agent by the option", argv: ["codex", "--help"], expected: { verb: "help", topic: "start" } },
    { name: "shows help of starting for an agent", argv: ["help", "codex"], expected: { verb: "help", topic: "start" } },
    { name: "allows hosts, in canonical form, until the session ends", argv: ["policy", "allow", "API.Example.com", "*.x.example", "git.example.com:22,443"], expected: { verb: "policy allow", hosts: ["api.example.com", "**.x.example", "git.example.com:22,443"], scope: "session" } },
    { name: "allows a host for a moment", argv: ["policy", "allow", "--once", "a.example"], expected: { verb: "policy allow", scope: "once" } },
    { name: "denies a host for good", argv: ["policy", "deny", "a.example", "--always"], expected: { verb: "policy deny", hosts: ["a.example"], scope: "always" } },
    { name: "takes --session as the scope of a change", argv: ["policy", "deny", "--session", "a.example"], expected: { verb: "policy deny", hosts: ["a.example"], scope: "session" } },
    { name: "takes --session as a session of a log", argv: ["logs", "--session", "2026"], expected: { verb: "logs", session: "2026", follow: false } },
    { name: "explains a host", argv: ["policy", "explain", "a.example:80", "--json"], expected: { verb: "policy explain", question: "a.example:80", json: true } },
    { name: "sets up by options", argv: ["setup", "--agent", "codex", "--preset", "go", "--preset", "rust", "--allow", "a.example:8443"], expected: { verb: "setup", wish: { agent: "codex", presets: ["go", "rust"], allow: ["a.example:8443"], user: false } } },
    { name: "shows help of all that is about the policy", argv: ["policy", "--help"], expected: { verb: "help", topic: "policy" } },
    { name: "shows help of one of it", argv: ["help", "policy", "allow"], expected: { verb: "help", topic: "policy allow" } },
    { name: "counts what the newest session did", argv: ["logs", "stats"], expected: { verb: "logs stats", session: undefined, json: false } },
    { name: "counts what a session did that is named after it", argv: ["logs", "stats", "2026", "--json"], expected: { verb: "logs stats", session: "2026", json: true } },
    { name: "counts what a session did that is named by the option", argv: ["logs", "stats", "--session", "2026"], expected: { verb: "logs stats", session: "2026" } },
    { name: "judges a command and takes its words unchanged", argv: ["preflight", "--mode", "heuristic", "--json", "--", "curl", "--json", "a b", "--"], expected: { verb: "preflight", mode: "heuristic", json: true, command: ["curl", "--json", "a b", "--"] } },
    { name: "judges a command as it is configured", argv: ["preflight", "--agent", "codex", "--", "x"], expected: { verb: "preflight", mode: undefined, agent: "codex", json: false } },
    { name: "shows what the file guard asks", argv: ["confirm", "list", "--json"], expected: { verb: "confirm list", json: true } },
    { name: "says yes once", argv: ["confirm", "approve", "p1"], expected: { verb: "confirm approve", prompt: "p1", scope: "once" } },
    { name: "says yes for the session of a prompt", argv: ["confirm", "approve", "--session", "s1/p1"], expected: { verb: "confirm approve", prompt: "s1/p1", scope: "session" } },
    { name: "says yes for good", argv: ["confirm", "approve", "p1", "--always"], expected: { verb: "confirm approve", prompt: "p1", scope: "rule" } },
    { name: "says no", argv: ["confirm", "deny", "p1"], expected: { verb: "confirm deny", prompt: "p1" } },
    { name: "shows help of all that answers the file guard", argv: ["confirm", "--help"], expected: { verb: "help", topic: "confirm" } },
    { name: "answers a hook", argv: ["hook", "claude"], expected: { verb: "hook claude" } },
    { name: "prints a sandbox profile", argv: ["proxy", "seatbelt-profile", "--config", "x.toml"], expected: { verb: "proxy seatbelt-profile", file: "x.toml" } },
    { name: "shows help of a verb of two words", argv: ["help", "logs", "stats"], expected: { verb: "help", topic: "logs stats" } },
    { name: "shows help of a word that needs a second one", argv: ["hook", "--help"], expected: { verb: "help", topic: "hook" } },
    { name: "shows the version", argv: ["-V"], expected: { verb: "version" } },
    { name: "shows the version whatever else the verb would need", argv: ["run", "--version"], expected: { verb: "version" } },
  ])("$name", ({ argv, expected }) => {
    expect(parse(argv)).toMatchObject(expected);
  });
});

describe("options", () => {
  test("reads every repeatable option each time it is written", () => {
    const command = parse(["run", "-p", "80", "-p9090:90/udp", "--port=127.0.0.2:1:2", "-eA=1", "-e", "B", "--env=C=", "--add-dir", "/a", "--add-dir=/b", "--dns", "9.9.9.9", "--add-host", "db:10.0.0.5", "--package", "jq", "--package", "htop", "--", "x"]);
    expect(command).toMatchObject({
      options: {
        ports: [
          { address: "127.0.0.1", host: 80, container: 80, protocol: "tcp" },
          { address: "127.0.0.1", host: 9090, container: 90, protocol: "udp" },
          { address: "127.0.0.2", host: 1, container: 2, protocol: "tcp" },
        ],
        env: ["A=1", "B", "C="],
        addDirs: ["/a", "/b"],
        dns: ["9.9.9.9"],
        addHosts: [{ name: "db", address: "10.0.0.5" }],
        image: { packages: ["jq", "htop"] },
      },
    });
  });

  test.each([
    { name: "an agents list by spaces or commas", argv: ["--agents", "claude codex@1.2.3"], agents: [{ name: "claude", version: undefined }, { name: "codex", version: "1.2.3" }] },
    { name: "no agents", argv: ["--agents", "none"], agents: [] },
    { name: "agents as they are remembered", argv: [], agents: undefined },
  ])("understands $name", ({ argv, agents: wished }) => {
    expect(parse(["--rebuild", ...argv])).toMatchObject({ options: { image: { agents: wished } } });
  });

  test("takes the word none for no certificates and no packages", () => {
    expect(parse(["--rebuild", "--ca-file", "none", "--package", "none"])).toMatchObject({ options: { image: { caFile: null, packages: [] } } });
  });
});

function refusePath(kind: string, typed: string): { what: string } {
  return { what: `${typed} is no ${kind}` };
}

describe("mistakes", () => {
  test.each([
    { name: "names the nearest command", argv: ["shel"], said: /"shel" is neither.*did you mean shell\?/ },
    { name: "names the nearest agent", argv: ["claud"], said: /did you mean claude\?/ },
    { name: "names the nearest option", argv: ["--add-dri", "x"], said: /did you mean --add-dir\?/ },
    { name: "says that agent options go after --", argv: ["claude", "--model", "x"], said: /options of the agent go after --/ },
    { name: "refuses a forgotten value", argv: ["--dns", "--dry-run"], said: /--dns needs a value/ },
    { name: "refuses a value for a switch", argv: ["--dry-run=yes"], said: /takes no value/ },
    { name: "refuses an option of another verb", argv: ["cleanup", "-p", "80"], said: /--port has no meaning for cleanup/ },
    { name: "refuses a single option written twice", argv: ["--engine", "docker", "--engine", "podman"], said: /--engine is given more than once/ },
    { name: "refuses an unknown engine", argv: ["--engine", "lxc"], said: /"lxc" is not an engine/ },
    { name: "refuses the host's network", argv: ["--network", "host"], said: /--network "host" is refused/ },
    { name: "refuses another container's network", argv: ["--network", "container:db"], said: /network of another container/ },
    { name: "refuses a network that reads as an option", argv: ["--network=-x"], said: /is not the name of a network/ },
    { name: "refuses a port out of range", argv: ["-p", "65536"], said: /is not a port/ },
    { name: "refuses a port of an unknown protocol", argv: ["-p", "80/sctp"], said: /names the protocol/ },
    { name: "refuses an address that is none", argv: ["-p", "example:80:80"], said: /is not an address/ },
    { name: "refuses one port twice", argv: ["-p", "80", "-p", "80:90"], said: /publishes 127.0.0.1:80\/tcp twice/ },
    { name: "refuses a resolver that is a name", argv: ["--dns", "dns.example"], said: /--dns "dns.example" is not an address/ },
    { name: "refuses a variable without a name", argv: ["-e", "=x"], said: /is not the name of a variable/ },
    { name: "refuses a hosts line without an address", argv: ["--add-host", "db"], said: /has no address/ },
    { name: "refuses a package that reads as an option", argv: ["--package=-o"], said: /is not the name of a Debian package/ },
    { name: "refuses a base that reads as an option", argv: ["--base=-x"], said: /is not an image/ },
    { name: "refuses an agent with an empty version", argv: ["codex@"], said: /no usable version/ },
    { name: "refuses an unknown agent in a list", argv: ["--rebuild", "--agents", "cladue"], said: /did you mean claude\?/ },
    { name: "refuses run without a command", argv: ["run"], said: /run needs a command/ },
    { name: "refuses an empty command", argv: ["shell", "--"], said: /no command after --/ },
    { name: "refuses --rebuild with another command", argv: ["doctor", "--rebuild"], said: /^--rebuild has no meaning for doctor; leave it out, or see agentbox help doctor$/ },
    { name: "refuses --rebuild before another command", argv: ["--rebuild", "shell"], said: /^--rebuild has no meaning for shell; [^\n]*$/ },
    { name: "refuses --rebuild with signing in", argv: ["codex", "login", "--rebuild"], said: /^--rebuild has no meaning for login; [^\n]*$/ },
    { name: "refuses rebuild without its dashes", argv: ["rebuild"], said: /"rebuild" is neither.*; agentbox --rebuild$/ },
    { name: "refuses login without an agent", argv: ["login"], said: /^login comes after the agent .*; write agentbox claude login$/ },
    { name: "refuses policy without a word", argv: ["policy"], said: /^policy needs a word.*; see agentbox help policy$/ },
    { name: "names the nearest word of policy", argv: ["policy", "alow", "x.example"], said: /^policy "alow" is no command; did you mean policy allow\?$/ },
    { name: "refuses hook without an agent", argv: ["hook"], said: /^hook needs a word that says what to do; see agentbox help hook$/ },
    { name: "refuses the hook of an agent that has none", argv: ["hook", "codex"], said: /^hook "codex" is no command; see agentbox help hook$/ },
    { name: "refuses preflight without a command", argv: ["preflight"], said: /^preflight needs a command/ },
    { name: "refuses preflight with nothing after --", argv: ["preflight", "--"], said: /^preflight needs a command/ },
    { name: "shows where a command to judge belongs", argv: ["preflight", "curl", "--", "x"], said: /^"curl" is one word too many; a command goes after --: agentbox preflight -- curl$/ },
    { name: "refuses a mode that is none", argv: ["preflight", "--mode", "lax", "--", "x"], said: /^--mode "lax" is not a mode/ },
    { name: "refuses a session named twice", argv: ["logs", "stats", "a", "--session", "b"], said: /^"a" and --session both name a session; keep one of them$/ },
    { name: "refuses a second session", argv: ["logs", "stats", "a", "b"], said: /^"b" is one word too many; leave it out, or see agentbox help logs stats$/ },
    { name: "refuses a word after logs", argv: ["logs", "stat"], said: /^"stat" is one word too many/ },
    { name: "refuses a command where none is taken", argv: ["logs", "stats", "--", "x"], said: /^logs stats takes nothing after --/ },
    { name: "does not take an option of preflight for an agent's", argv: ["claude", "--mod", "x"], said: /^there is no option "--mod"; see agentbox --help; options of the agent go after --/ },
    { name: "refuses to allow nothing", argv: ["policy", "allow"], said: /^policy allow needs a host/ },
    { name: "refuses two scopes", argv: ["policy", "allow", "--once", "--always", "x.example"], said: /^--once and --always exclude each other/ },
    { name: "shows how a name of the local network is allowed", argv: ["policy", "allow", "db:5432,5433"], said: /\{ host = "db", ports = \[5432, 5433\], private = true \}/ },
    { name: "shows how the host's own name is allowed", argv: ["policy", "allow", "host.docker.internal:8080"], said: /\{ host = "host\.docker\.internal", ports = \[8080\], private = true \}/ },
    { name: "says that localhost needs nothing", argv: ["policy", "allow", "localhost:3000"], said: /reach each other on localhost anyway/ },
    { name: "points to --full-network for everything", argv: ["policy", "allow", "*"], said: /--full-network/ },
    { name: "refuses ports of a host that is denied", argv: ["policy", "deny", "x.example:80"], said: /names ports; write x\.example/ },
    { name: "refuses an option of another verb", argv: ["policy", "show", "--always"], said: /^--always has no meaning for policy show; leave it out, or see agentbox help policy show$/ },
    { name: "refuses login before its agent", argv: ["login", "codex"], said: /^login comes after the agent .*; write agentbox codex login$/ },
    { name: "refuses help on what is no command, asked for by the option", argv: ["stop", "--help"], said: /^"stop" is neither an agent nor a command/ },
    { name: "refuses help on what is no command", argv: ["help", "docter"], said: /"docter" is neither.*did you mean doctor\?/ },
    { name: "names help as the nearest command", argv: ["hlep"], said: /did you mean help\?/ },
    { name: "refuses a yes to nothing", argv: ["confirm", "approve"], said: /^confirm approve needs the id of a prompt; agentbox confirm list shows what waits$/ },
    { name: "refuses a yes to two prompts", argv: ["confirm", "approve", "p1", "p2"], said: /^"p2" is one word too many; answer one prompt at a time$/ },
    { name: "refuses a yes for the session and for good", argv: ["confirm", "approve", "p1", "--session", "--always"], said: /^--session and --always exclude each other/ },
    { name: "refuses a no for good", argv: ["confirm", "deny", "p1", "--always"], said: /^--always has no meaning for confirm deny/ },
    { name: "refuses confirm without a word", argv: ["confirm"], said: /^confirm needs a word that says what to do/ },
    { name: "refuses a word after cleanup", argv: ["cleanup", "foo"], said: /^"foo" is one word too many; leave it out, or see agentbox help cleanup$/ },
    { name: "refuses a word after doctor", argv: ["doctor", "foo"], said: /^"foo" is one word too many; leave it out/ },
    { name: "refuses a word after ssh-init", argv: ["ssh-init", "foo"], said: /^"foo" is one word too many; leave it out/ },
    { name: "refuses a word after signing in", argv: ["codex", "login", "foo"], said: /^"foo" is one word too many; leave it out/ },
    { name: "refuses a second agent to rebuild", argv: ["--rebuild", "codex", "claude"], said: /^"claude" is one word too many; leave it out/ },
    { name: "shows where a command for a shell belongs", argv: ["shell", "ls"], said: /^"ls" is one word too many; a command goes after --: agentbox shell -- ls$/ },
    { name: "refuses an unknown option beside --version", argv: ["--version", "--bogus"], said: /^there is no option "--bogus"/ },
    { name: "refuses an unknown word beside --version", argv: ["--version", "bogus"], said: /"bogus" is neither/ },
    { name: "refuses words that belong after --", argv: ["claude", "fix it"], said: /"fix it" is one word too many/ },
  ])("$name", ({ argv, said }) => {
    expect(complain(argv).join("\n")).toMatch(said);
  });

  test("tells all mistakes of one command line at once", () => {
    expect(complain(["shel", "--nope", "-p", "x", "-e", "1=2", "--engine", "lxc"], "yes")).toHaveLength(6);
  });

  test("tells paths that are wrong together with the others", () => {
    expect(() => parseCommandLine(["--add-dir", "/a", "--ca-file", "/c", "-p", "x"], { agents, checkPath: refusePath, firewall: undefined, log: undefined })).toThrow(
      /--add-dir \/a is no directory[^]*--ca-file \/c is no file/,
    );
  });

  test("ignores AGENTBOX_FIREWALL where no box starts", () => {
    expect(complain(["doctor"], "maybe")).toEqual([]);
  });

  test.each([
    { name: "refuses a log of another form", argv: [], log: "text", said: ['AGENTBOX_LOG is "text"; set it to json, or unset the variable'] },
    { name: "refuses it for a rebuild too", argv: ["--rebuild"], log: "JSON", said: ['AGENTBOX_LOG is "JSON"; set it to json, or unset the variable'] },
    { name: "takes json", argv: [], log: "json", said: [] },
    { name: "takes an empty value as none", argv: [], log: "", said: [] },
    { name: "ignores it where no steps are shown", argv: ["doctor"], log: "text", said: [] },
    { name: "ignores it for the version", argv: ["--version"], log: "text", said: [] },
  ])("AGENTBOX_LOG: $name", ({ argv, log, said }) => {
    expect(complain(argv, undefined, log)).toEqual(said);
  });
});
