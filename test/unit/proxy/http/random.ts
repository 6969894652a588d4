/** A generator with a fixed seed (mulberry32): the same numbers in every run. */
export function makeRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

export type Random = ReturnType<typeof makeRandom>;

/** One of several. */
export function pick<T>(random: Random, items: readonly [T, ...T[]]): T {
  return items[random(items.length)] ?? items[0];
}

/** What makes two readers disagree, put at places where it may. */
const ODDITIES = ["\r", "\n", "\r\n", "\r\n\r\n", "\n\n", "\0", " ", "\t", "\u000b", "\u007f", "\u00e4", ":", ",", ";", "#", "@", "\\", "%0d%0a", "//", "http://", "0", "chunked", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "Host: b.example.com\r\n", " HTTP/1.1\r\n", "GET /smuggled HTTP/1.1\r\nHost: b.example.com\r\n\r\n"] as const;

/** Changes a text in a few places. */
export function mutate(random: Random, text: string): string {
  let mutant = text;
  for (let changes = random(3); changes > 0; changes -= 1) {
    const at = random(mutant.length + 1);
    const cut = at + (random(3) === 0 ? random(8) : 0);
    mutant = mutant.slice(0, at) + (random(8) === 0 ? "" : pick(random, ODDITIES)) + mutant.slice(cut);
  }
  return mutant;
}
