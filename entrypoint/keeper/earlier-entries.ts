import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { FAMILIES, nameSets } from "../../firewall/rule.ts";
import type { Opening } from "./learned-table.ts";

const ENVIRONMENT = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };
const MAX_OUTPUT = 64 * 1024 * 1024;

type Entry = Pick<Opening, "set" | "port"> & { range: string };

/** Reads what these learned sets of the kernel hold. */
export async function readEarlierEntries(backend: "ipset" | "nft", sets: readonly Opening["set"][]): Promise<Entry[]> {
  const wanted = sets.flatMap((set) => FAMILIES.map((family) => ({ set, name: nameSets(family)[set] })));
  const found = await Promise.all(wanted.map(async ({ set, name }) => parseEntries(backend, await list(backend, name)).map((entry) => ({ ...entry, set }))));
  return found.flat();
}

function parseEntries(backend: "ipset" | "nft", text: string): Omit<Entry, "set">[] {
  return [...text.matchAll(backend === "ipset" ? IPSET_ENTRY : NFT_ENTRY)].map(([, range = "", port]) => ({ range, port: Number(port) }));
}

const IPSET_ENTRY = /^add \S+ (\S+),tcp:(\d+)/gm;
const NFT_ENTRY = /([0-9a-f.:/]+) \. tcp \. (\d+)/g;

async function list(backend: "ipset" | "nft", set: string): Promise<string> {
  const [file = "", ...args] = backend === "ipset" ? ["ipset", "save", set] : ["nft", "list", "set", "inet", "agentbox", set];
  const { stdout } = await promisify(execFile)(file, args, { env: ENVIRONMENT, maxBuffer: MAX_OUTPUT });
  return stdout;
}
