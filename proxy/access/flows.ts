import { addTo } from "../log/traffic.ts";
import { Slots } from "../net/slots.ts";
import type { Access, Admitted } from "./access.ts";
import { type Asked, judgeAddresses, judgeHost } from "./judgement.ts";

/** Something that was let through and still goes on. */
export type FlowInput = { asked: Asked; admitted: Admitted; /** Ends it at once. */ cut: () => void };

/** What a flow carried; `bodies` are those of an intercepted request and its response. */
type Carried = { bytesUp: number; bytesDown: number; bodies?: { up: number; down: number } | undefined };

export type Flow = {
  /** Writes down what it carried, once. */
  end: (carried: Carried) => void;
  /** Ends it without a line: the flows inside it tell what was carried. */
  forget: () => void;
};

/** All open connections and tunnels: a new policy cuts those that it does not let through. */
export class Flows {
  private readonly access: Access;
  private readonly open = new Slots<OpenFlow>();

  constructor(access: Access) {
    this.access = access;
  }

  get size(): number {
    return this.open.size;
  }

  /** Begins to watch over one. */
  begin(input: FlowInput): Flow {
    const flow = new OpenFlow(input, this.open, this.access);
    this.open.add(flow);
    return flow;
  }

  /** Judges everything that is open by the policy in force, and cuts what it does not let through; returns how many. */
  judgeAnew(): number {
    const { policy } = this.access;
    let count = 0;
    for (const flow of this.open.list()) {
      const { asked, admitted } = flow.input;
      const verdict = judgeHost(policy, asked);
      const judged = verdict.action === "deny" ? undefined : judgeAddresses(policy, verdict, admitted.addresses);
      if (judged !== undefined && (judged.refused === undefined || judged.kept.length > 0)) continue;
      this.access.refuse(asked, judged?.refused ?? verdict.decision, admitted.addresses);
      flow.wasCut = true;
      count += 1;
      flow.input.cut();
    }
    return count;
  }
}

class OpenFlow implements Flow {
  slot = -1;
  wasCut = false;
  readonly input: FlowInput;
  private readonly all: Slots<OpenFlow>;
  private readonly access: Access;
  private readonly started = Date.now();

  constructor(input: FlowInput, all: Slots<OpenFlow>, access: Access) {
    this.input = input;
    this.all = all;
    this.access = access;
  }

  end({ bytesUp, bytesDown, bodies }: Carried): void {
    if (!this.all.delete(this)) return;
    const { asked, admitted } = this.input;
    const now = Date.now();
    const carried = { bytesUp, bytesDown, durationMs: Math.max(0, now - this.started) };
    // What was cut, and what is measured, has lines of its own.
    const memo = this.wasCut || bodies !== undefined ? undefined : asked.memo;
    if (memo?.traffic?.isOver === false) return addTo(memo.traffic, carried);
    const window = this.access.log.addTraffic({ protocol: asked.protocol, method: asked.method, host: admitted.name, port: admitted.port, cut: this.wasCut, ...this.measure(bodies) }, carried, now);
    if (memo !== undefined) memo.traffic = window;
  }

  forget(): void {
    this.all.delete(this);
  }

  /** Sizes of bodies are written down only where the owner wants that. */
  private measure(bodies: Carried["bodies"]): Pick<Carried, "bodies"> {
    const { inspect, maxBodyBytes } = this.access.policy;
    return !inspect || bodies === undefined ? {} : { bodies: { up: Math.min(bodies.up, maxBodyBytes), down: Math.min(bodies.down, maxBodyBytes) } };
  }
}
