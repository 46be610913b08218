// The nodes of the cluster, and taking the copies off one.
import { useState } from "preact/hooks";
import { json, path, Problem } from "./api";
import type { Drain, Live, Places, System } from "./clusterdata";
import { asProblem, useLoad } from "./load";
import { Dialog, Name, Refusal, bytes, count, visible } from "./parts";
import { TakeOut } from "./take_out_node";
import { duration, plural } from "./words";

interface Props {
  live: Live;
  places?: Places;
  again: () => void;
}

export function Nodes({ live, places, again }: Props) {
  const [draining, setDraining] = useState<{ node: string; on: boolean }>();
  const [leaving, setLeaving] = useState<{ node: string; away: boolean }>();
  const several = live.members.cluster_nodes.length > 1;
  const voters = new Set([...live.systems.values()].flatMap((s) => (s instanceof Problem ? [] : s.metadata.voters)));
  const leader = [...live.systems.values()].flatMap((s) => (s instanceof Problem ? [] : [s.metadata.leader])).find(Boolean);
  return (
    <section class="group">
      <h2>Nodes</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Nodes">
        <table>
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">State</th>
              <th scope="col">Zone</th>
              <th scope="col">Version</th>
              <th scope="col" class="number">Copies</th>
              <th scope="col" class="number">Data</th>
              <th scope="col" class="number">Space on disk</th>
              <th scope="col" class="number">Memory</th>
              <th scope="col" class="number">Up for</th>
              <th scope="col"><span class="unseen">Actions</span></th>
            </tr>
          </thead>
          <tbody>
            {live.members.cluster_nodes.map((node) => {
              const system = live.systems.get(node);
              const here = system && !(system instanceof Problem) ? system : undefined;
              const drain = places?.drains.get(node);
              const size = places?.bytes.get(node);
              return (
                <tr key={node}>
                  <th scope="row"><Name of={node} /> {leader === node ? <span class="chip">leader</span> : several && voters.has(node) && <span class="chip" title="It votes on the metadata">votes</span>}</th>
                  <td class="states">
                    <State of={system} />{drain?.draining && <span class="quiet">, {drain.drained ? "drained" : "draining"}</span>}
                    {here && here.run_queue > 0 && <p class="quiet">{plural(here.run_queue, "thread waits", "threads wait")} for a processor</p>}
                  </td>
                  <td>{visible(places?.zones.get(node) ?? "")}</td>
                  <td>{places?.versions.get(node) ?? ""}</td>
                  <td class="number">{drain ? count(drain.copies) : ""}</td>
                  <td class="number">{size === undefined ? "" : bytes(size)}</td>
                  <td class="number"><Space of={here?.disk} /></td>
                  <td class="number">{here ? bytes(Object.values(here.memory).reduce((a, b) => a + b, 0)) : ""}</td>
                  <td class="number">{here ? duration(here.uptime) : ""}</td>
                  <td class="number actions">
                    {several && drain && (
                      <button type="button" aria-label={`${drain.draining ? "End draining of" : "Drain"} ${visible(node)}`} onClick={() => setDraining({ node, on: !drain.draining })}>
                        {drain.draining ? "End drain …" : "Drain …"}
                      </button>
                    )}
                    {several && drain && (drain.drained || !system) && (
                      <button type="button" class="danger" aria-label={`Take out ${visible(node)}`} onClick={() => setLeaving({ node, away: !system })}>
                        Take out …
                      </button>
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {places?.removed.map((n) => <p class="note" key={n}><Name of={n} /> was removed from the cluster and has copies still.</p>)}
      {live.members.upgrade && <p class="note">The cluster is being upgraded: {live.members.upgrade.waits_for.map(visible).join(", ")} run an older program.</p>}
      {leaving && <TakeOut {...leaving} close={() => setLeaving(undefined)} done={again} />}
      {draining && <DrainDialog {...draining} close={() => setDraining(undefined)} done={again} />}
    </section>
  );
}

/** Space is what is free of the disk of a node; below a tenth of it that is told as little. */
function Space({ of }: { of: System["disk"] }) {
  if (!of?.size) return <></>;
  const little = of.free < of.size / 10;
  return <span class={little ? "failed" : undefined} title={`${count(of.free)} of ${count(of.size)} bytes are free`}>{little && "little: "}{bytes(of.free)} of {bytes(of.size)}</span>;
}

function State({ of }: { of: System | Problem | undefined }) {
  if (of === undefined) return <b class="failed">away</b>;
  if (of instanceof Problem) return <span class="failed">does not answer: {visible(of.reason)}</span>;
  return <>here</>;
}

function DrainDialog({ node, on, close, done }: { node: string; on: boolean; close: () => void; done: () => void }) {
  const to = path("_node", node, "_drain");
  const plan = useLoad(async (signal) => (on ? json<Drain>(to, { method: "POST", body: '{"dry_run":true}', signal }) : undefined), [node, on]);
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    setBusy(true);
    try {
      await json(to, on ? { method: "POST", body: "{}", writes: true } : { method: "DELETE" });
      close();
      done();
    } catch (e) {
      setProblem(asProblem(e));
      setBusy(false);
    }
  };
  const left = plan.value?.left ?? [];
  return (
    <Dialog title={on ? "Drain node" : "End drain"} close={close}>
      <form onSubmit={submit}>
        {on
          ? <p><b><Name of={node} /></b> gets no copies any more, and those that it has move to other nodes. When it is drained it can be taken out of the cluster.</p>
          : <p><b><Name of={node} /></b> takes copies again. Those that have left come back by a rebalance only.</p>}
        {on && plan.loading && <p class="quiet" role="status">Finding out what moves …</p>}
        {plan.value && <p>{plural(plan.value.total_moves ?? 0, "copy", "copies")} move, {bytes(plan.value.bytes ?? 0)}.</p>}
        {left.length > 0 && <p class="note">{plural(left.length, "copy has", "copies have")} no other place: {visible(left[0]!.why)}</p>}
        {plan.problem && <Refusal of={plan.problem} />}
        {problem && <Refusal of={problem} />}
        <div class="buttons">
          <button type="button" onClick={close}>Cancel</button>
          <button class={on ? "danger" : "main"} disabled={busy || plan.loading}>{on ? "Drain" : "End drain"}</button>
        </div>
      </form>
    </Dialog>
  );
}
