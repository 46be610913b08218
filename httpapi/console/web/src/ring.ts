// The ring of hashes that a database is cut into, as numbers.

export interface Piece {
  range: string;
  from: number; // share of the ring before it, 0 to 1
  size: number; // its own share
  nodes: string[]; // with a copy
}

const whole = 2 ** 32;

/** piecesOf takes the answer of _shards apart, in the order of the ring. */
export function piecesOf(shards: Record<string, string[]>): Piece[] {
  return Object.entries(shards).map(([range, nodes]) => {
    const [from = 0, to = 0] = range.split("-").map((half) => parseInt(half, 16));
    return { range, from: from / whole, size: (to - from + 1) / whole, nodes };
  }).sort((a, b) => a.from - b.from);
}

/** nodesOf lists the nodes that have copies. */
export function nodesOf(pieces: Piece[]): string[] {
  return [...new Set(pieces.flatMap((p) => p.nodes))].sort();
}

/** shareWords says a share of the ring. */
export function shareWords(size: number): string {
  const parts = 1 / size;
  return Number.isInteger(parts) ? (parts === 1 ? "all" : `1/${parts}`) : `${(size * 100).toPrecision(3)} %`;
}
