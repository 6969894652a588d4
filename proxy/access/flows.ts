import type { DecisionLog } from "../log/decision-log.ts";
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
  private readonly log: DecisionLog;
  private readonly open = new Map<Flow, FlowInput>();
  private readonly wasCut = new Set<Flow>();

  constructor(access: Access) {
    this.access = access;
    this.log = access.log;
  }

  get size(): number {
    return this.open.size;
  }

  /** Begins to watch over one. */
  begin(input: FlowInput): Flow {
    const started = Date.now();
    const flow: Flow = {
      end: ({ bytesUp, bytesDown, bodies }) => {
        if (!this.open.delete(flow)) return;
        const { asked, admitted } = input;
        const now = Date.now();
        this.log.addTraffic({ protocol: asked.protocol, method: asked.method, host: admitted.name, port: admitted.port, cut: this.wasCut.delete(flow), ...this.measure(bodies) }, { bytesUp, bytesDown, durationMs: Math.max(0, now - started) }, now);
      },
      forget: () => {
        this.open.delete(flow);
        this.wasCut.delete(flow);
      },
    };
    this.open.set(flow, input);
    return flow;
  }

  /** Sizes of bodies are written down only where the owner wants that. */
  private measure(bodies: Carried["bodies"]): Pick<Carried, "bodies"> {
    const { inspect, maxBodyBytes } = this.access.policy;
    return !inspect || bodies === undefined ? {} : { bodies: { up: Math.min(bodies.up, maxBodyBytes), down: Math.min(bodies.down, maxBodyBytes) } };
  }

  /** Judges everything that is open by the policy in force, and cuts what it does not let through; returns how many. */
  judgeAnew(): number {
    const { policy } = this.access;
    let count = 0;
    for (const [flow, input] of this.open) {
      const { asked, admitted } = input;
      const verdict = judgeHost(policy, asked);
      const judged = verdict.action === "deny" ? undefined : judgeAddresses(policy, verdict, admitted.addresses);
      if (judged !== undefined && (judged.refused === undefined || judged.kept.length > 0)) continue;
      this.access.refuse(asked, judged?.refused ?? verdict.decision, admitted.addresses);
      this.wasCut.add(flow);
      count += 1;
      input.cut();
    }
    return count;
  }
}
