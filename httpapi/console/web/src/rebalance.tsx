// Moving copies until the nodes are equally full.
import { useState } from "preact/hooks";
import { json, query, type Problem } from "./api";
import type { Move, Plan, Rebalance } from "./clusterdata";
import { asProblem, useLoad } from "./load";
import { Dialog, Name, Refusal, bytes, visible } from "./parts";
import { plural } from "./words";

const mostMoves = 100;

const states: Record<string, string> = {
  none: "none was asked for", running: "runs", stopped: "is stopped", completed: "is done", cancelled: "was cancelled",
};

export function Rebalancing({ of, again }: { of: Rebalance; again: () => void }) {
  const [planning, setPlanning] = useState(false);
  const [cancelling, setCancelling] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const put = async (state: string) => {
    setProblem(undefined);
    try {
      await json("_cluster/rebalance", { method: "PUT", body: JSON.stringify({ state }) });
      again();
    } catch (e) {
      setProblem(asProblem(e));
    }
  };
  const planned = of.planned ?? { copies: 0, bytes: 0 };
  const moved = of.moved ?? { copies: 0, bytes: 0 };
  const open = of.state === "running" || of.state === "stopped";
  return (
    <section class="group">
      <header class="bar">
        <h2>Rebalance <span class="quiet">{states[of.state] ?? visible(of.state)}</span></h2>
        {of.state === "running" && <button type="button" onClick={() => void put("stopped")}>Stop</button>}
        {of.state === "stopped" && <button type="button" onClick={() => void put("running")}>Go on</button>}
        {open && <button type="button" class="danger" onClick={() => setCancelling(true)}>Cancel …</button>}
        {of.state !== "running" && <button type="button" onClick={() => setPlanning(true)}>Plan a rebalance …</button>}
      </header>
      {problem && <Refusal of={problem} />}
      {of.state !== "none" && (
        <p>
          <span class="share"><progress max={Math.max(planned.copies, 1)} value={moved.copies} aria-label="Copies moved" /></span>{" "}
          {planned.copies === 0
            ? (of.state === "running" ? "finding out what moves …" : "nothing had to move")
            : `${moved.copies} of ${plural(planned.copies, "copy", "copies")} moved, ${bytes(moved.bytes)} of ${bytes(planned.bytes)}`}
          {(of.failed?.copies ?? 0) > 0 && <span class="failed">, {of.failed!.copies} failed</span>}
          {of.reason && <span class="quiet"> · {visible(of.reason)}</span>}
        </p>
      )}
      {of.refused && <p class="note">Moves are not begun: {visible(of.refused)}</p>}
      <Moves label="Moves under way" of={of.running} />
      <Moves label="Moves that failed" of={of.failures ?? []} />
      {(of.left ?? []).map((l) => <p class="quiet" key={l.why}>{plural(l.copies, "copy is left as it is", "copies are left as they are")}: {visible(l.why)}</p>)}
      {planning && <PlanDialog close={() => setPlanning(false)} done={again} />}
      {cancelling && <CancelDialog close={() => setCancelling(false)} done={again} />}
    </section>
  );
}

function Moves({ label, of }: { label: string; of: Move[] }) {
  if (of.length === 0) return null;
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label={label}>
        <table>
          <thead>
            <tr>
              <th scope="col">Database</th>
              <th scope="col">Range</th>
              <th scope="col">From → to</th>
              <th scope="col" class="number">Size</th>
              <th scope="col">{label === "Moves that failed" ? "Failed" : "Why, how far"}</th>
            </tr>
          </thead>
          <tbody>
            {of.slice(0, mostMoves).map((m) => (
              <tr key={[m.db, m.range, m.from, m.to].join()}>
                <th scope="row"><Name of={m.db} /></th>
                <td><code>{m.range}</code></td>
                <td><Name of={m.from} /> → <Name of={m.to} /></td>
                <td class="number">{bytes(m.bytes)}</td>
                <td>{visible([m.reason, m.step?.replaceAll("_", " "), m.why].filter(Boolean).join(", "))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {of.length > mostMoves && <p class="quiet">The first {mostMoves} of {of.length} are shown.</p>}
    </>
  );
}

interface Props {
  close: () => void;
  done: () => void;
}

function PlanDialog({ close, done }: Props) {
  const plan = useLoad((signal) => json<Plan>("_cluster/rebalance" + query({ limit: mostMoves }), { method: "POST", body: '{"dry_run":true}', signal }), []);
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    setBusy(true);
    try {
      await json("_cluster/rebalance" + query({ limit: 0 }), { method: "POST", body: "{}", writes: true });
      close();
      done();
    } catch (e) {
      setProblem(asProblem(e));
      setBusy(false);
    }
  };
  const p = plan.value;
  return (
    <Dialog title="Rebalance: the plan" close={close}>
      <form onSubmit={submit} class="plan">
        {plan.loading && <p class="quiet" role="status">Making a plan …</p>}
        {plan.problem && <Refusal of={plan.problem} again={plan.again} />}
        {p && (
          <>
            <p>{p.total_moves === 0 ? "Nothing has to move." : `${plural(p.total_moves, "copy moves", "copies move")}, ${bytes(p.bytes)}.`}</p>
            <div class="scroll" tabIndex={0} role="region" aria-label="Nodes before and after">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Node</th>
                    <th scope="col" class="number">Now</th>
                    <th scope="col" class="number">After</th>
                  </tr>
                </thead>
                <tbody>
                  {p.nodes.map((n) => (
                    <tr key={n.node}>
                      <th scope="row"><Name of={n.node} /> {n.draining && <span class="quiet">draining</span>}</th>
                      <td class="number">{bytes(n.before)}</td>
                      <td class="number">{bytes(n.after)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            {p.away && p.away.length > 0 && <p class="note">Nothing moves from or to {p.away.map(visible).join(", ")}: away.</p>}
            {p.total_left > 0 && <p class="note">{plural(p.total_left, "copy is left as it is", "copies are left as they are")}: {visible(p.left?.[0]?.why ?? "")}</p>}
            <Moves label="Moves" of={p.moves ?? []} />
          </>
        )}
        {problem && <Refusal of={problem} />}
        <div class="buttons">
          <button type="button" onClick={close}>Close</button>
          {p && p.total_moves > 0 && <button class="main" disabled={busy}>Start rebalance</button>}
        </div>
      </form>
    </Dialog>
  );
}

function CancelDialog({ close, done }: Props) {
  const [problem, setProblem] = useState<Problem>();
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    try {
      await json("_cluster/rebalance", { method: "DELETE" });
      close();
      done();
    } catch (e) {
      setProblem(asProblem(e));
    }
  };
  return (
    <Dialog title="Cancel rebalance" close={close}>
      <form onSubmit={submit}>
        <p>Moves that are under way are given up; copies that have moved stay where they are.</p>
        {problem && <Refusal of={problem} />}
        <div class="buttons">
          <button type="button" onClick={close}>Go on with it</button>
          <button class="danger">Cancel the rebalance</button>
        </div>
      </form>
    </Dialog>
  );
}
