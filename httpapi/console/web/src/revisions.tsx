// The revisions of a document: its tree, two of them side by side, and the end of conflicts.
import { useMemo, useState } from "preact/hooks";
import { Problem, ask, documentPath, query } from "./api";
import { DocumentNavigation } from "./document_navigation";
import { short } from "./documents";
import { KeepRevision } from "./keep_revision";
import { useLoad } from "./load";
import { elementsOf, member, membersOf } from "./jsonparts";
import { Refusal, Title, count } from "./parts";
import { RevisionDrawing, state } from "./revision_drawing";
import { byRank, generation, revisionTree, toggled, type Leaf } from "./revision_tree";
import { link, replace, type Place } from "./route";
import { SideBySide } from "./side_by_side";
import { Slice } from "./slice";
import type { User } from "./session";

/** mostText is how many characters the answer with all leaves may have, which tells their contents too. */
const mostText = 64 << 20;

/** mostLeaves are drawn and listed; more say nothing to a person. */
const mostLeaves = 100;

/** load returns all leaves, sorted by rank. */
async function load(db: string, id: string, signal: AbortSignal): Promise<Leaf[]> {
  const answer = await ask(documentPath(db, id) + query({ open_revs: "all", revs: true }), { signal });
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let all = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    all += part.value;
    if (all.length > mostText) {
      await reader.cancel();
      throw new Problem(0, "too large", "All revisions of this document together are too large to be looked at here.");
    }
  }
  const leaves: Leaf[] = [];
  const slice = new Slice(signal);
  for (const element of elementsOf(all)) {
    const document = member(element, "ok");
    if (document !== undefined) leaves.push(leafOf(document));
    await slice.pause();
  }
  return leaves.sort(byRank);
}

function leafOf(document: string): Leaf {
  const leaf: Leaf = { rev: "", deleted: false, path: [] };
  for (const [name, value] of membersOf(document)) {
    if (name === "_deleted") leaf.deleted = value === "true";
    if (name === "_rev") leaf.rev = JSON.parse(value) as string;
    if (name === "_revisions") {
      const { start, ids } = JSON.parse(value) as { start: number; ids: string[] };
      leaf.path = ids.map((hash, i) => `${start - i}-${hash}`);
    }
  }
  return leaf;
}

export function View({ db, id, place, user }: { db: string; id: string; place: Place; user: User }) {
  const loaded = useLoad((signal) => load(db, id, signal), [db, id, user.name]);
  const [keeping, setKeeping] = useState<string>();
  const [told, setTold] = useState("");
  const leaves = useMemo(() => loaded.value?.slice(0, mostLeaves) ?? [], [loaded.value]);
  const tree = useMemo(() => revisionTree(leaves), [leaves]);
  const winner = leaves[0];
  const live = (loaded.value ?? []).filter((l) => !l.deleted).map((l) => l.rev);
  const inURL = place.params.getAll("rev").filter((rev) => leaves.some((l) => l.rev === rev)).slice(0, 2);
  const chosen = place.params.has("rev") ? inURL : live.length > 1 ? live.slice(0, 2) : [];
  const choose = (rev: string) => {
    const revs = toggled(chosen, rev);
    return `${link(place.segments)}?${new URLSearchParams(revs.length > 0 ? revs.map((r) => ["rev", r]) : [["rev", ""]])}`;
  };
  return (
    <main class="wide">
      <DocumentNavigation db={db} id={id} kind="revisions" conflicts={Math.max(live.length - 1, 0)} />
      <header class="bar"><Title text={id} /></header>
      {told && <p class="note" role="status">{told}</p>}
      {loaded.problem && <Refusal of={loaded.problem} again={loaded.again} />}
      {!loaded.value && loaded.loading && <p class="quiet" role="status">Loading …</p>}
      {winner && (
        <>
          <p class="quiet">{summary(loaded.value!.length, live.length)}</p>
          <div class="scroll drawing" tabIndex={0} role="region" aria-label="Drawing of the revisions">
            <RevisionDrawing tree={tree} winner={winner.rev} chosen={chosen} choose={choose} />
          </div>
          <Leaves leaves={leaves} winner={winner.rev} chosen={chosen} toggle={(rev) => replace(choose(rev))} keep={live.length > 1 ? setKeeping : undefined} />
          {loaded.value!.length > mostLeaves && <p class="quiet">{count(loaded.value!.length - mostLeaves)} more leaves are not shown.</p>}
          <SideBySide db={db} id={id} revs={chosen} user={user} />
        </>
      )}
      {keeping !== undefined && (
        <KeepRevision
          db={db}
          id={id}
          keep={keeping}
          others={live.filter((rev) => rev !== keeping)}
          close={() => setKeeping(undefined)}
          done={(what) => {
            setKeeping(undefined);
            setTold(what);
            replace(link(place.segments));
            loaded.again();
          }}
        />
      )}
    </main>
  );
}

function summary(leaves: number, live: number): string {
  const deleted = leaves - live;
  const dead = deleted > 0 ? `, ${count(deleted)} deleted ${deleted === 1 ? "leaf" : "leaves"}` : "";
  if (live === 0) return `The document is deleted${dead}.`;
  return live === 1 ? `No conflict${dead}.` : `${count(live)} revisions in conflict${dead}. The winner is what a read of the document gives.`;
}

interface Leaves {
  leaves: Leaf[];
  winner: string;
  chosen: string[];
  toggle: (rev: string) => void;
  keep?: (rev: string) => void;
}

/** Leaves says in words what the drawing shows. */
function Leaves({ leaves, winner, chosen, toggle, keep }: Leaves) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Leaves of the tree of revisions">
      <table>
        <thead>
          <tr>
            <th scope="col">Shown</th>
            <th scope="col">Leaf</th>
            <th scope="col">State</th>
            <th scope="col">Comes from</th>
            {keep && <th scope="col">Conflict</th>}
          </tr>
        </thead>
        <tbody>
          {leaves.map((l) => (
            <tr key={l.rev}>
              <td class="select"><input type="checkbox" aria-label={`Show ${l.rev}`} checked={chosen.includes(l.rev)} onChange={() => toggle(l.rev)} /></td>
              <th scope="row"><code title={l.rev}>{short(l.rev)}</code></th>
              <td>{state(l, winner)}</td>
              <td><Ancestors of={l} /></td>
              {keep && <td>{!l.deleted && <button type="button" onClick={() => keep(l.rev)}>Keep this one</button>}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const mostAncestors = 50;

function Ancestors({ of }: { of: Leaf }) {
  const ancestors = of.path.slice(1);
  const oldest = of.path.at(-1) ?? of.rev;
  const missing = generation(oldest) - 1;
  const unknown = missing > 0 ? `${count(missing)} older ones are not known any more` : "";
  if (ancestors.length === 0) return <span class="quiet">{unknown || "it is the first"}</span>;
  return (
    <details class="ancestors">
      <summary>{count(ancestors.length)} {ancestors.length === 1 ? "ancestor" : "ancestors"}</summary>
      <ol>
        {ancestors.slice(0, mostAncestors).map((rev) => <li key={rev}><code>{rev}</code></li>)}
        {ancestors.length > mostAncestors && <li class="quiet">{count(ancestors.length - mostAncestors)} more</li>}
        {unknown && <li class="quiet">{unknown}</li>}
      </ol>
    </details>
  );
}
