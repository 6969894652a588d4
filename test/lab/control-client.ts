import { request } from "node:http";
import { z } from "zod";
import { EngineError } from "../../policy/errors.ts";
import {
  connectionSchema,
  questionSchema,
  requestSchema,
  stateSchema,
  type DnsBehaviours,
  type HostBehaviours,
  type LabState,
  type RecordedConnection,
  type RecordedQuestion,
  type RecordedRequest,
} from "./control-schema.ts";

/** Carries one call to the lab's control server and returns the body of a good answer. */
export type ControlTransport = (method: "GET" | "POST", path: string, body: string) => Promise<string>;

/** The lab seen from a test: what it has recorded, and what it shall do. */
export type LabControl = {
  state(): Promise<LabState>;
  /** Questions that reached any resolver, oldest first; `name` compares without regard to case. */
  questions(filter?: { name?: string }): Promise<RecordedQuestion[]>;
  connections(filter?: { address?: string; port?: number }): Promise<RecordedConnection[]>;
  requests(filter?: { host?: string }): Promise<RecordedRequest[]>;
  /** Sets what the resolvers say; keys are names, `*.suffix`, `*`; null removes. A key's behaviour is replaced as a whole. */
  setDns(behaviours: DnsBehaviours): Promise<void>;
  /** Sets what TCP connections meet; keys are addresses or `*`; null removes. */
  setHosts(behaviours: HostBehaviours): Promise<void>;
  /** Forgets recordings and behaviours. */
  reset(): Promise<void>;
};

/** Makes the client over any transport. */
export function createControl(transport: ControlTransport): LabControl {
  const get = async <T>(path: string, schema: z.ZodType<T>) => schema.parse(JSON.parse(await transport("GET", path, "")));
  const post = async (path: string, body: unknown) => void (await transport("POST", path, JSON.stringify(body)));
  return {
    state: () => get("/state", stateSchema),
    questions: async ({ name } = {}) => {
      const all = await get("/questions", z.array(questionSchema));
      return all.filter((entry) => name === undefined || entry.name.toLowerCase() === name.toLowerCase());
    },
    connections: async ({ address, port } = {}) => {
      const all = await get("/connections", z.array(connectionSchema));
      return all.filter((entry) => (address ?? entry.address) === entry.address && (port ?? entry.port) === entry.port);
    },
    requests: async ({ host } = {}) => {
      const all = await get("/requests", z.array(requestSchema));
      return all.filter((entry) => (host ?? entry.host) === entry.host);
    },
    setDns: (behaviours) => post("/dns", behaviours),
    setHosts: (behaviours) => post("/hosts", behaviours),
    reset: () => post("/reset", {}),
  };
}

/** The transport over the lab's unix socket. */
export function socketTransport(socketPath: string): ControlTransport {
  return (method, path, body) =>
    new Promise((resolve, reject) => {
      const call = request({ socketPath, method, path, timeout: 10_000, agent: false }, (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => (text += chunk));
        response.on("error", reject);
        response.on("end", () => {
          if (response.statusCode === 200) resolve(text);
          else reject(new EngineError({ what: `lab control: ${method} ${path} was refused: ${text.trim()}` }));
        });
      });
      call.on("timeout", () => call.destroy(new Error("no answer within 10 s")));
      call.on("error", (cause) => reject(new EngineError({ what: `lab control: ${socketPath} does not answer (${cause.message})` }, { cause })));
      call.end(body);
    });
}
