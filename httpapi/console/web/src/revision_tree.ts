// The tree of revisions of a document: what its leaves say of their ancestors, and where each is drawn.

export interface Leaf {
  rev: string;
  deleted: boolean;
  path: string[]; // itself, then its ancestors, as far as they are known
}

export interface Revision {
  rev: string;
  leaf?: Leaf;
  parent?: Revision;
  skipped: number; // revisions in line between it and its parent, which are not drawn
  missing: number; // ancestors that nobody knows any more
  column: number;
  lane: number;
}

export interface RevisionTree {
  revisions: Revision[]; // parents before their children
  columns: number;
  lanes: number;
}

export function generation(rev: string): number {
  return Number.parseInt(rev, 10) || 0;
}

/** byRank sorts leaves as the server does: the first one wins. */
export function byRank(a: Leaf, b: Leaf): number {
  if (a.deleted !== b.deleted) return a.deleted ? 1 : -1;
  return generation(b.rev) - generation(a.rev) || (a.rev < b.rev ? 1 : -1);
}

interface Node {
  rev: string;
  leaf?: Leaf;
  parent?: Node;
  children: Node[];
}

/** join makes one tree of the paths of leaves, or several where what they have in common is not known. */
function join(leaves: Leaf[]): Node[] {
  const nodes = new Map<string, Node>();
  const node = (rev: string) => {
    let n = nodes.get(rev);
    if (!n) nodes.set(rev, (n = { rev, children: [] }));
    return n;
  };
  for (const leaf of leaves) {
    let below = node(leaf.rev);
    below.leaf = leaf;
    for (const rev of leaf.path.slice(1)) {
      if (!below.parent) { // another leaf may know less of what they have in common
        below.parent = node(rev);
        below.parent.children.push(below);
      }
      below = below.parent;
    }
  }
  return [...nodes.values()].filter((n) => !n.parent);
}

/** inLine is how many revisions without branches are drawn between two others; more are left out. */
const inLine = 2;

/** revisionTree lays out the tree of leaves, which are sorted by rank: their lanes have that order. */
export function revisionTree(leaves: Leaf[]): RevisionTree {
  const tree: RevisionTree = { revisions: [], columns: 0, lanes: 0 };
  const place = (n: Node, parent?: Revision, skipped = 0): Revision => {
    const column = parent ? parent.column + (skipped > 0 ? 2 : 1) : 0;
    const missing = parent ? 0 : Math.max(generation(n.rev) - 1, 0);
    const r: Revision = { rev: n.rev, leaf: n.leaf, parent, skipped, missing, column, lane: tree.lanes };
    tree.revisions.push(r);
    tree.columns = Math.max(tree.columns, column + 1);
    return r;
  };
  const grow = (n: Node, at: Revision) => {
    if (n.children.length === 0) tree.lanes++;
    for (const child of n.children) {
      const line: Node[] = [];
      let end = child;
      for (; end.children.length === 1; end = end.children[0]!) line.push(end);
      let from = at;
      const all = line.length <= inLine;
      if (all) for (const between of line) from = place(between, from);
      grow(end, place(end, from, all ? 0 : line.length));
    }
  };
  for (const root of join(leaves)) grow(root, place(root));
  return tree;
}

/** toggled is which revisions are chosen after one more choice: two at most, the newest ones. */
export function toggled(chosen: string[], rev: string): string[] {
  return chosen.includes(rev) ? chosen.filter((r) => r !== rev) : [...chosen, rev].slice(-2);
}
