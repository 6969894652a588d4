import { once } from "node:events";
import { UsageError } from "../../policy/errors.ts";
import { socketTransport } from "./control-client.ts";
import { startDockerLab } from "./docker.ts";
import { openEngine, type EngineCommand, type EngineName } from "./docker-command.ts";
import { type KnownLab, listLabs, removeLab, removeLabs } from "./docker-sweep.ts";
import { startNamespaceLab } from "./namespace.ts";

type Options = { engine: string; image?: string | undefined; name: string[]; socket?: string | undefined; state?: string | undefined; all: boolean };
type Print = (line: string) => void;

const HELP = `The internet in a box: a resolver, web, git, SSH and package servers that exist only in here.

  npm run lab -- netns                          a lab in network namespaces, until Ctrl-C (root)
  npm run lab -- docker up --image IMAGE        a lab for containers; stays until it is taken down
  npm run lab -- docker status
  npm run lab -- docker down [NAME]             takes one such lab down; its name is needed if there are several
  npm run lab -- control GET /questions --socket FILE
                 also GET /state /connections /requests, POST /dns /hosts /reset with a JSON argument

  --image    any image with Node 24, iproute2 and git, such as AgentBox's own
  --engine   docker (default) or podman
  --name     a further host name that shall resolve; repeatable
  --state    where the lab keeps its certificate authority
  --all      docker down: every lab that was started by hand`;

/** Does what a person asks of the lab on the command line; without arguments it explains itself. */
export async function runByHand([verb, ...rest]: readonly string[], options: Options, print: Print): Promise<void> {
  const common = { names: options.name, ...(options.state === undefined ? {} : { stateDirectory: options.state }) };
  switch (verb) {
    case "netns":
      return await holdNamespaces(common, print);
    case "docker":
      return await runDocker(rest, options, common, print);
    case "control":
      return print((await callControl(rest, options.socket)).trimEnd());
    case undefined:
      // As root the bare command starts the lab that needs nothing else; others are told what to type.
      if (process.getuid?.() === 0 && process.platform === "linux") return await holdNamespaces(common, print);
      return print(HELP);
    case "help":
      return print(HELP);
    default:
      throw new UsageError({ what: `lab: unknown command ${verb}`, expected: "netns, docker, control or help" });
  }
}

async function holdNamespaces(common: { names: string[]; stateDirectory?: string }, print: Print): Promise<void> {
  const lab = await startNamespaceLab(common);
  const shell = `${Object.entries(lab.env).map(([key, value]) => `${key}='${value.replaceAll("'", String.raw`'\''`)}'`).join(" ")} bash`;
  print(`The lab is up. A shell in the box:\n\n  env -i ${lab.argv(["env"]).join(" ")} ${shell}\n`);
  print(`Inside, for example: curl https://github.com/   dig example.com   git clone https://github.com/any/repo\n`);
  print(`What the lab saw:    npm run lab -- control GET /questions --socket ${lab.socket}`);
  print(`Make it misbehave:   npm run lab -- control POST /dns '{"*":{"delayMs":20}}' --socket ${lab.socket}\n\nCtrl-C ends it.`);
  const timer = setInterval(() => {}, 60_000);
  await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM"), once(process, "SIGHUP")]);
  clearInterval(timer);
  await lab.stop();
}

async function runDocker([verb = "", ...names]: readonly string[], options: Options, common: { names: string[]; stateDirectory?: string }, print: Print): Promise<void> {
  const name = readEngine(options.engine);
  const engine = openEngine(name);
  if (verb === "up") {
    if (options.image === undefined) throw new UsageError({ what: "lab: docker up needs an image", expected: "--image IMAGE with Node 24, iproute2 and git" });
    const lab = await startDockerLab({ ...common, engine: name, image: options.image, lasting: true });
    print(`The lab is up. A box in it:\n\n  ${name} run --rm -it --network ${lab.network} --dns ${lab.dns} -v ${lab.caFile}:/lab-ca.pem:ro -e CURL_CA_BUNDLE=/lab-ca.pem ${options.image} bash\n`);
    print(`What the lab saw:  npm run lab -- control GET /questions --socket ${lab.socket}\nTake it down:      npm run lab -- docker down ${lab.network}${name === "docker" ? "" : ` --engine ${name}`}`);
  } else if (verb === "down") {
    const removed = [...(await takeDown(engine, { names, all: options.all })), ...(await removeLabs(engine, "abandoned"))];
    print(removed.length === 0 ? "There was no lab to take down." : `Removed ${removed.join(", ")}.`);
  } else if (verb === "status") {
    const labs = await listLabs(engine);
    for (const lab of labs) print(`${lab.name}  ${lab.owner === "lasting" ? "started by hand" : `of ${lab.owner}`}  ${lab.runDirectory}/control.sock`);
    if (labs.length === 0) print("No lab is up.");
  } else {
    throw new UsageError({ what: `lab: unknown command docker ${verb}`.trimEnd(), expected: "docker up, docker down or docker status" });
  }
}

async function takeDown(engine: EngineCommand, { names, all }: { names: readonly string[]; all: boolean }): Promise<string[]> {
  if (all && names.length === 0) return await removeLabs(engine, "lasting");
  if (all || names.length > 1) throw new UsageError({ what: "lab: docker down takes one lab or all", expected: "docker down NAME, or docker down --all" });
  const lab = chooseLab(await listLabs(engine), names[0]);
  if (lab === undefined) return [];
  await removeLab(engine, lab);
  return [lab.name];
}

/**
 * Chooses the lab to take down among those that were started by hand: the one that is named, else the only
 * one, undefined when there is none. Labs of running tests are never chosen. Throws UsageError in doubt.
 */
export function chooseLab(labs: readonly KnownLab[], name: string | undefined): KnownLab | undefined {
  const lasting = labs.filter(({ owner }) => owner === "lasting");
  const chosen = name === undefined ? lasting : lasting.filter((lab) => lab.name === name);
  if (chosen.length === 1 || (name === undefined && chosen.length === 0)) return chosen[0];
  const known = lasting.length === 0 ? "a lab to be up" : `one of ${lasting.map((lab) => lab.name).join(", ")}`;
  const what = name === undefined ? "several labs are up" : `no lab ${name} was started by hand`;
  throw new UsageError({ what: `lab: ${what}`, expected: known, fix: "docker down NAME, or docker down --all" });
}

async function callControl([method, path, body]: readonly string[], socket: string | undefined): Promise<string> {
  if ((method !== "GET" && method !== "POST") || path === undefined || socket === undefined) {
    throw new UsageError({ what: "lab: control needs a method, a path and --socket FILE", expected: "for example: control GET /questions --socket FILE" });
  }
  return await socketTransport(socket)(method, path, body ?? "");
}

function readEngine(text: string): EngineName {
  if (text === "docker" || text === "podman") return text;
  throw new UsageError({ what: `lab: unknown engine ${text}`, expected: "docker or podman" });
}
