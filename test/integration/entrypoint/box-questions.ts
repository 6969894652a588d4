import type { KeeperStatus } from "../../../policy/keeper-message.ts";
import type { HeldBox } from "./held-box.ts";
import { parseOutcomes, reachArgv } from "./reach.ts";

// What tests ask of a box that runs: its status, its names, its network.

const PYTHON = "/usr/bin/python3";

export async function readStatus(box: HeldBox): Promise<KeeperStatus> {
  const { status } = await box.control({ op: "status" });
  if (status === null) throw new Error("the keeper told no status");
  return status;
}

/** The code of the answer that the box's own resolver gives to an agent: 0, 2 for SERVFAIL, 3 for NXDOMAIN. */
export async function lookUp(box: HeldBox, name: string): Promise<string> {
  const [code = ""] = (await lookUpAddress(box, name)).split(" ");
  return code;
}

/** The same with the address of its last record. */
export async function lookUpAddress(box: HeldBox, name: string): Promise<string> {
  const { stdout, stderr } = await box.exec([PYTHON, "-c", LOOK_UP, name]);
  return stdout.trim() || stderr;
}

export async function reach(box: HeldBox, ...targets: string[]): Promise<string[]> {
  const { stdout } = await box.exec(reachArgv(targets));
  return parseOutcomes(stdout).map(({ outcome }) => outcome);
}

const LOOK_UP = `
import socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(8); s.connect(("127.0.0.1", 53))
s.send(struct.pack("!HHHHHH", 4660, 256, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l.encode() for l in sys.argv[1].split(".")) + b"\\0" + struct.pack("!HH", 1, 1))
reply = s.recv(4096)
print(reply[3] & 15, *([socket.inet_ntoa(reply[-4:])] if struct.unpack("!H", reply[6:8])[0] else []))
`;
