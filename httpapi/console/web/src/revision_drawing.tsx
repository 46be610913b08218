// The tree of revisions as a drawing. Its leaves are links that choose them.
import { short } from "./documents";
import { count } from "./parts";
import type { Revision, RevisionTree } from "./revision_tree";

const column = 110;
const lane = 46;
const margin = 60;
const leafLabel = 200;

interface Props {
  tree: RevisionTree;
  winner: string;
  chosen: string[];
  choose: (rev: string) => string; // the address that chooses it
}

const x = (r: Revision) => margin + r.column * column;
const y = (r: Revision) => 24 + r.lane * lane;

/** state says what a leaf is, in a word that is also its style. */
export function state(leaf: { rev: string; deleted: boolean }, winner: string): "winner" | "conflict" | "deleted" {
  if (leaf.deleted) return "deleted";
  return leaf.rev === winner ? "winner" : "conflict";
}

export function RevisionDrawing({ tree, winner, chosen, choose }: Props) {
  const width = margin + (tree.columns - 1) * column + leafLabel;
  const height = 24 + tree.lanes * lane;
  return (
    <svg class="revisions" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="group" aria-label="Tree of revisions">
      {tree.revisions.map((r) => <Edge key={r.rev} of={r} />)}
      {tree.revisions.map((r) => r.leaf
        ? (
          <a key={r.rev} href={choose(r.rev)} class={state(r.leaf, winner)} aria-label={`${r.rev}, ${state(r.leaf, winner)}`} aria-current={chosen.includes(r.rev) ? "true" : undefined}>
            <title>{r.rev}</title>
            {chosen.includes(r.rev) && <circle class="ring" cx={x(r)} cy={y(r)} r="12" />}
            <circle cx={x(r)} cy={y(r)} r="7" />
            {r.leaf.deleted && <path d={`M${x(r) - 4} ${y(r) - 4}l8 8m0-8l-8 8`} />}
            <text x={x(r) + 18} y={y(r) + 4}>{short(r.rev)} {state(r.leaf, winner)}</text>
          </a>
        )
        : (
          <g key={r.rev} class="ancestor">
            <title>{r.rev}</title>
            <circle cx={x(r)} cy={y(r)} r="4" />
            <text x={x(r)} y={y(r) + 19} text-anchor="middle">{short(r.rev)}</text>
          </g>
        ))}
    </svg>
  );
}

function Edge({ of }: { of: Revision }) {
  const [toX, toY] = [x(of), y(of)];
  if (!of.parent) {
    if (of.missing === 0) return null;
    return (
      <g class="missing">
        <title>{count(of.missing)} older ones are not known any more</title>
        <path d={`M${toX - 48} ${toY}H${toX}`} />
        <text x={toX - 34} y={toY - 7} text-anchor="middle">{count(of.missing)} older</text>
      </g>
    );
  }
  const [fromX, fromY] = [x(of.parent), y(of.parent)];
  const bend = fromX + column / 2;
  return (
    <g class={of.skipped > 0 ? "skipped" : undefined}>
      <path d={`M${fromX} ${fromY}C${bend} ${fromY} ${fromX} ${toY} ${bend} ${toY}H${toX}`} />
      {of.skipped > 0 && <text x={(bend + toX) / 2} y={toY - 7} text-anchor="middle">{count(of.skipped)} more</text>}
    </g>
  );
}
