import type { RecordedConnection, RecordedQuestion, RecordedRequest } from "./control-schema.ts";

type Entry<T> = Omit<T, "at">;

/** What the lab has seen since its start or the last reset. */
export type Recorder = {
  readonly questions: readonly RecordedQuestion[];
  readonly connections: readonly RecordedConnection[];
  readonly requests: readonly RecordedRequest[];
  question(entry: Entry<RecordedQuestion>): void;
  connection(entry: Entry<RecordedConnection>): void;
  request(entry: Entry<RecordedRequest>): void;
  clear(): void;
};

// A load test must not exhaust the lab's memory; what matters to a test is among the newest.
const MOST_ENTRIES = 200_000;

/** Creates an empty recorder; `at` is milliseconds since the epoch. */
export function createRecorder(): Recorder {
  const questions: RecordedQuestion[] = [];
  const connections: RecordedConnection[] = [];
  const requests: RecordedRequest[] = [];
  return {
    questions,
    connections,
    requests,
    question: (entry) => append(questions, entry),
    connection: (entry) => append(connections, entry),
    request: (entry) => append(requests, entry),
    clear: () => {
      questions.length = 0;
      connections.length = 0;
      requests.length = 0;
    },
  };
}

function append<T>(list: (T & { at: number })[], entry: T): void {
  if (list.length >= MOST_ENTRIES) list.splice(0, MOST_ENTRIES / 10);
  list.push({ at: Date.now(), ...entry });
}

/** Drops the IPv4-in-IPv6 form in which a dual-stack listener reports IPv4 peers. */
export function plainAddress(address: string | undefined): string {
  if (address === undefined) return "";
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice(7) : address;
}
