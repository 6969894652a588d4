import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { FAMILIES, nameSets } from "../../firewall/rule.ts";

const ENVIRONMENT = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };
const MAX_OUTPUT = 64 * 1024 * 1024;

/** Reads what the learned sets of the kernel hold. */
export async function readEarlierEntries(backend: "ipset" | "nft"): Promise<{ range: string; port: number }[]> {
  const texts = await Promise.all(FAMILIES.map((family) => list(backend, nameSets(family).learned)));
  return texts.flatMap((text) => [...text.matchAll(backend === "ipset" ? IPSET_ENTRY : NFT_ENTRY)].map(([, range = "", port]) => ({ range, port: Number(port) })));
}

const IPSET_ENTRY = /^add \S+ (\S+),tcp:(\d+)/gm;
const NFT_ENTRY = /([0-9a-f.:/]+) \. tcp \. (\d+)/g;

async function list(backend: "ipset" | "nft", set: string): Promise<string> {
  const [file = "", ...args] = backend === "ipset" ? ["ipset", "save", set] : ["nft", "list", "set", "inet", "agentbox", set];
  const { stdout } = await promisify(execFile)(file, args, { env: ENVIRONMENT, maxBuffer: MAX_OUTPUT });
  return stdout;
}
