import { allowedCalls, processorCalls } from "./seccomp-calls.ts";

type Argument = { index: number; op: "SCMP_CMP_EQ" | "SCMP_CMP_MASKED_EQ"; value: number; valueTwo?: number };

type CallRule = {
  names: string[];
  action: "SCMP_ACT_ALLOW" | "SCMP_ACT_ERRNO";
  errnoRet?: number;
  args?: Argument[];
  includes?: { arches: string[] };
  excludes?: { arches: string[] };
};

/** A profile in the form that Docker and Podman read. */
export type SeccompProfile = {
  defaultAction: "SCMP_ACT_ERRNO";
  defaultErrnoRet: number;
  archMap: { architecture: string; subArchitectures: string[] }[];
  syscalls: CallRule[];
};

const eperm = 1;
const enosys = 38;

/** Sockets of this family reach the machine below a virtual host, past every packet filter. */
const familyVsock = 40;

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET: a new namespace is a new set of rights. */
const namespaceFlags = 0x7e_02_00_00;

/** Execution domains: Linux, 32-bit Linux, both without address randomisation, and the question which one it is. */
const personalities = [0x0, 0x8, 0x2_00_00, 0x2_00_08, 0xff_ff_ff_ff];

/** Builds the profile of a box: the engines' default for a container without added rights, and no AF_VSOCK. */
export function buildSeccompProfile(): SeccompProfile {
  return {
    defaultAction: "SCMP_ACT_ERRNO",
    defaultErrnoRet: eperm,
    archMap: [
      { architecture: "SCMP_ARCH_X86_64", subArchitectures: ["SCMP_ARCH_X86", "SCMP_ARCH_X32"] },
      { architecture: "SCMP_ARCH_AARCH64", subArchitectures: ["SCMP_ARCH_ARM"] },
      { architecture: "SCMP_ARCH_S390X", subArchitectures: ["SCMP_ARCH_S390"] },
    ],
    syscalls: [
      { names: Object.values(allowedCalls).flatMap(splitWords), action: "SCMP_ACT_ALLOW" },
      ...processorCalls.map(({ arches, names }): CallRule => ({ names: splitWords(names), action: "SCMP_ACT_ALLOW", includes: { arches: [...arches] } })),
      ...personalities.map((value): CallRule => allowWhen("personality", { index: 0, op: "SCMP_CMP_EQ", value })),
      ...renderSocketRules(),
      ...renderCloneRules(),
    ],
  };
}

/**
 * Allows `socket` for every family but AF_VSOCK. The kernel reads the family's lower 32 bits, a filter
 * compares all 64: `family != 40` would let 2^32 + 40 through. So there is one rule for each of the 32
 * bits, which allows a family that differs from 40 in that bit.
 */
function renderSocketRules(): CallRule[] {
  const bits = Array.from({ length: 32 }, (_, bit) => 2 ** bit);
  const differing = bits.map((value): Argument => {
    const valueTwo = Math.floor(familyVsock / value) % 2 === 1 ? 0 : value;
    return { index: 0, op: "SCMP_CMP_MASKED_EQ", value, valueTwo };
  });
  return [
    ...differing.map((argument) => allowWhen("socket", argument)),
    // libseccomp lets 32-bit programs through `socketcall` for each socket call that is allowed, without a
    // look at the family; a rule of its own for the whole call wins over those.
    { names: ["socketcall"], action: "SCMP_ACT_ERRNO", errnoRet: enosys },
  ];
}

function renderCloneRules(): CallRule[] {
  const noNamespace = { op: "SCMP_CMP_MASKED_EQ", value: namespaceFlags, valueTwo: 0 } as const;
  const s390 = { arches: ["s390", "s390x"] };
  return [
    { ...allowWhen("clone", { index: 0, ...noNamespace }), excludes: s390 },
    // s390 takes the flags second.
    { ...allowWhen("clone", { index: 1, ...noNamespace }), includes: s390 },
    // The flags of clone3 lie in memory, where a filter cannot look; libc then falls back to clone.
    { names: ["clone3"], action: "SCMP_ACT_ERRNO", errnoRet: enosys },
  ];
}

function allowWhen(name: string, argument: Argument): CallRule {
  return { names: [name], action: "SCMP_ACT_ALLOW", args: [argument] };
}

function splitWords(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}
