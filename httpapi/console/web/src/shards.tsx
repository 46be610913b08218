// The shards of a database: which range of hashes is where, and splitting one.
import { useState } from "preact/hooks";
import { json, path, Problem } from "./api";
import { each, type Job, type Membership } from "./clusterdata";
import { asProblem } from "./load";
import { DatabaseNavigation } from "./navigation";
import { Dialog, Name, Refusal, Title, visible } from "./parts";
import { usePolled } from "./poll";
import { Jobs } from "./reshardjobs";
import { nodesOf, piecesOf, shareWords, type Piece } from "./ring";
import type { User } from "./session";
import { plural, shardOf } from "./words";

type State = "here" | "away" | "lost" | "joining";

const stateWords: Record<State, string> = { here: "", away: "node is away", lost: "its files are gone", joining: "is being filled" };

interface Loaded {
  pieces: Piece[];
  states: Map<string, State>; // by node and range; of administrators only
  jobs: Job[];
}

async function load(db: string, admin: boolean, signal: AbortSignal): Promise<Loaded> {
  const { shards } = await json<{ shards: Record<string, string[]> }>(path(db, "_shards"), { signal });
  const pieces = piecesOf(shards);
  const states = new Map<string, State>();
  if (!admin) return { pieces, states, jobs: [] };
  const [members, jobs] = await Promise.all([
    json<Membership>("_membership", { signal }),
    json<{ jobs: Job[] }>("_reshard/jobs", { signal }).catch((e: unknown) => {
      if (asProblem(e).status === 501) return { jobs: [] }; // a node without jobs
      throw e;
    }),
  ]);
  const nodes = nodesOf(pieces);
  for (const p of pieces) for (const n of p.nodes) states.set(n + p.range, members.all_nodes.includes(n) ? "here" : "away");
  const ask = nodes.filter((n) => members.all_nodes.includes(n));
  const told = await each(ask, (n) => json<{ lost: string[]; joining: string[] }>(path("_node", n, "_lost_shards"), { signal }), signal);
  for (const [node, t] of told) {
    if (t instanceof Problem) continue;
    for (const state of ["lost", "joining"] as const) {
      for (const name of t[state]) {
        const shard = shardOf(name);
        if (shard?.db === db) states.set(node + shard.range, state);
      }
    }
  }
  return { pieces, states, jobs: jobs.jobs.filter((j) => shardOf(j.source)?.db === db) };
}

export function Shards({ db, user }: { db: string; user: User }) {
  const admin = user.roles.includes("_admin");
  const all = usePolled((signal) => load(db, admin, signal), 5000, [db, admin]);
  const [splitting, setSplitting] = useState<string>();
  const pieces = all.value?.pieces ?? [];
  return (
    <main>
      <DatabaseNavigation db={db} kind="shards" user={user} />
      <header class="bar">
        <Title text={db} />
        {pieces.length > 0 && <span class="quiet">{plural(pieces.length, "shard")}</span>}
      </header>
      {all.problem && <Refusal of={all.problem} again={all.again} />}
      {!all.value && all.loading && <p class="quiet" role="status">Loading …</p>}
      {all.value && (
        <>
          <Ring pieces={pieces} states={all.value.states} />
          <div class="scroll" tabIndex={0} role="region" aria-label="Shards">
            <table>
              <thead>
                <tr>
                  <th scope="col">Range of hashes</th>
                  <th scope="col" class="number">Share</th>
                  <th scope="col">Copies on</th>
                  <th scope="col"><span class="unseen">Actions</span></th>
                </tr>
              </thead>
              <tbody>
                {pieces.map((p) => (
                  <tr key={p.range}>
                    <th scope="row"><code>{p.range}</code></th>
                    <td class="number">{shareWords(p.size)}</td>
                    <td class="wraps">
                      {p.nodes.map((n) => {
                        const state = all.value!.states.get(n + p.range) ?? "here";
                        return <span class="chip" key={n}><Name of={n} />{state !== "here" && <b class="failed"> {stateWords[state]}</b>}</span>;
                      })}
                    </td>
                    <td class="number actions">
                      {admin && <button type="button" aria-label={`Split ${p.range}`} onClick={() => setSplitting(p.range)}>Split …</button>}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {admin && <div class="apart"><Jobs of={all.value.jobs} again={all.again} /></div>}
        </>
      )}
      {splitting && <Split db={db} range={splitting} copies={pieces.find((p) => p.range === splitting)?.nodes ?? []} close={() => setSplitting(undefined)} done={all.again} />}
    </main>
  );
}

const width = 1000;
const rowHeight = 26;

/** Ring draws a line for each node, with the ranges of which it has copies. The table below says the same. */
function Ring({ pieces, states }: { pieces: Piece[]; states: Map<string, State> }) {
  const nodes = nodesOf(pieces);
  return (
    <figure class="ring">
      {nodes.map((node) => (
        <div key={node}>
          <span class="node"><Name of={node} /></span>
          <svg viewBox={`0 0 ${width} ${rowHeight}`} preserveAspectRatio="none" aria-hidden="true">
            {pieces.map((p) => (
              <rect
                key={p.range} x={p.from * width} y="2" width={Math.max(p.size * width - 2, 0.5)} height={rowHeight - 4}
                class={p.nodes.includes(node) ? `copy ${states.get(node + p.range) ?? "here"}` : "copy none"}
              >
                <title>{p.range}</title>
              </rect>
            ))}
          </svg>
        </div>
      ))}
      <figcaption class="quiet">From hash 00000000 on the left to ffffffff on the right; each node has copies of the filled ranges.</figcaption>
    </figure>
  );
}

interface Result {
  ok?: boolean;
  error?: string;
  node: string;
}

function Split({ db, range, copies, close, done }: { db: string; range: string; copies: string[]; close: () => void; done: () => void }) {
  const [problem, setProblem] = useState<Problem>();
  const [refused, setRefused] = useState<Result[]>([]);
  const [busy, setBusy] = useState(false);
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    const node = new FormData(e.currentTarget as HTMLFormElement).get("node") || undefined;
    setBusy(true);
    setProblem(undefined);
    try {
      const results = await json<Result[]>("_reshard/jobs", { method: "POST", body: JSON.stringify({ type: "split", db, range, node }), writes: true });
      const failed = results.filter((r) => !r.ok);
      setRefused(failed);
      done();
      if (failed.length === 0) close();
    } catch (e) {
      setProblem(asProblem(e));
    }
    setBusy(false);
  };
  return (
    <Dialog title="Split shard" close={close}>
      <form onSubmit={submit}>
        <p>
          The range <code>{range}</code> of <b><Name of={db} /></b> becomes two of half its size. The database can be used meanwhile; the space on the disk
          is taken twice until it is done. Indexes are built for the halves.
        </p>
        <label>
          Copies{" "}
          <select name="node">
            <option value="">all</option>
            {copies.map((n) => <option key={n} value={n}>{visible(n)}</option>)}
          </select>
        </label>
        {refused.map((r) => <p class="failed" role="alert" key={r.node}><Name of={r.node} />: {visible(r.error ?? "")}</p>)}
        {problem && <Refusal of={problem} />}
        <div class="buttons">
          <button type="button" onClick={close}>Cancel</button>
          <button class="main" disabled={busy}>Split</button>
        </div>
      </form>
    </Dialog>
  );
}
