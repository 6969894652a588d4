import { expect, test } from "vitest";
import { UsageError } from "../../../policy/errors.ts";
import { chooseLab } from "../../lab/by-hand.ts";
import type { KnownLab } from "../../lab/docker-sweep.ts";

const a: KnownLab = { name: "lab-a", runDirectory: "/run/a", owner: "lasting" };
const b: KnownLab = { name: "lab-b", runDirectory: "/run/b", owner: "lasting" };
const ofTest: KnownLab = { name: "lab-t", runDirectory: "/run/t", owner: "host:1:2" };

test.each([
  { name: "takes the only one without a name", labs: [a, ofTest], asked: undefined, chosen: a },
  { name: "takes the one that is named", labs: [a, b], asked: "lab-b", chosen: b },
  { name: "has nothing to take where none is up", labs: [], asked: undefined, chosen: undefined },
  { name: "leaves a running test its lab", labs: [ofTest], asked: undefined, chosen: undefined },
])("docker down $name", ({ labs, asked, chosen }) => {
  expect(chooseLab(labs, asked)).toBe(chosen);
});

test.each([
  { name: "guesses which of several", labs: [a, b, ofTest], asked: undefined, said: "lab: several labs are up; expected one of lab-a, lab-b; fix: docker down NAME, or docker down --all" },
  { name: "takes another than the one that is named", labs: [a], asked: "lab-x", said: "lab: no lab lab-x was started by hand; expected one of lab-a; fix: docker down NAME, or docker down --all" },
  { name: "takes a running test its lab", labs: [ofTest], asked: "lab-t", said: "lab: no lab lab-t was started by hand; expected a lab to be up; fix: docker down NAME, or docker down --all" },
])("docker down never $name", ({ labs, asked, said }) => {
  const choose = () => chooseLab(labs, asked);
  expect(choose).toThrow(UsageError);
  expect(choose).toThrow(said);
});
