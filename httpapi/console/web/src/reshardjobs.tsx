// Jobs that split, merge or move shards.
import { useState } from "preact/hooks";
import { json, path, type Problem } from "./api";
import type { Job } from "./clusterdata";
import { asProblem } from "./load";
import { Dialog, Name, Refusal, visible } from "./parts";
import { link } from "./route";
import { shardOf, when } from "./words";

const mostShown = 100;
const kinds: Record<string, string> = { split: "Split", merge: "Merge", move: "Move" };
const order = ["failed", "running", "new", "stopped", "completed"];

/** steps are those of a job, in their order, to tell how far it is. */
const steps = [
  "new", "initial_copy", "topoff1", "build_indices", "topoff2", "copy_local_docs", "update_shardmap", "wait_source_close", "topoff3", "source_delete", "completed",
];

interface Props {
  of: Job[];
  stopped?: string;
  again: () => void;
}

export function Jobs({ of, stopped, again }: Props) {
  const [problem, setProblem] = useState<Problem>();
  const [removing, setRemoving] = useState<Job>();
  const put = async (id: string, state: string) => {
    setProblem(undefined);
    try {
      await json(path("_reshard", "jobs", id, "state"), { method: "PUT", body: JSON.stringify({ state }) });
      again();
    } catch (e) {
      setProblem(asProblem(e));
    }
  };
  const sorted = [...of].sort((a, b) => order.indexOf(a.job_state) - order.indexOf(b.job_state)).slice(0, mostShown);
  return (
    <section class="group">
      <h2>Resharding</h2>
      {stopped !== undefined && <p class="note">No jobs run on this cluster: {visible(stopped)}</p>}
      {problem && <Refusal of={problem} />}
      {of.length === 0 && <p class="quiet">No shard is split, merged or moved.</p>}
      {of.length > mostShown && <p class="note">{mostShown} of {of.length} jobs are shown.</p>}
      {sorted.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Jobs of resharding">
          <table>
            <thead>
              <tr>
                <th scope="col">Job</th>
                <th scope="col">Shard</th>
                <th scope="col">Node</th>
                <th scope="col">State</th>
                <th scope="col">Changed</th>
                <th scope="col"><span class="unseen">Actions</span></th>
              </tr>
            </thead>
            <tbody>{sorted.map((j) => <Row key={j.id} of={j} put={put} remove={() => setRemoving(j)} />)}</tbody>
          </table>
        </div>
      )}
      {removing && <Remove of={removing} close={() => setRemoving(undefined)} done={again} />}
    </section>
  );
}

function Row({ of, put, remove }: { of: Job; put: (id: string, state: string) => Promise<void>; remove: () => void }) {
  const shard = shardOf(of.source);
  const step = steps.indexOf(of.split_state);
  const goes = of.job_state === "running" || of.job_state === "new";
  const label = `${kinds[of.type] ?? of.type} of ${visible(of.source)} on ${visible(of.node)}`;
  return (
    <tr>
      <th scope="row">{kinds[of.type] ?? of.type}</th>
      <td>
        {shard ? <><a href={link(["shards", shard.db])}><Name of={shard.db} /></a> <code>{shard.range}</code></> : <Name of={of.source} />}
      </td>
      <td><Name of={of.node} />{of.target_node && <> → <Name of={of.target_node} /></>}</td>
      <td class="states">
        <span class={of.job_state === "failed" ? "failed" : ""}>{of.job_state}</span>
        {of.job_state !== "completed" && step >= 0 && (
          <> <progress max={steps.length - 1} value={step} aria-label={label} /> <span class="quiet">{of.split_state.replaceAll("_", " ")}</span></>
        )}
        {of.state_info.reason && <p class={of.job_state === "failed" ? "failed" : "quiet"}>{visible(of.state_info.reason)}</p>}
      </td>
      <td>{when(of.update_time)}</td>
      <td class="number actions">
        {goes && <button type="button" aria-label={`Stop: ${label}`} onClick={() => void put(of.id, "stopped")}>Stop</button>}
        {(of.job_state === "stopped" || of.job_state === "failed") && (
          <button type="button" aria-label={`Resume: ${label}`} onClick={() => void put(of.id, "running")}>Resume</button>
        )}
        <button type="button" class="danger" aria-label={`Remove: ${label}`} onClick={remove}>Remove …</button>
      </td>
    </tr>
  );
}

function Remove({ of, close, done }: { of: Job; close: () => void; done: () => void }) {
  const [problem, setProblem] = useState<Problem>();
  const ended = of.job_state === "completed" || of.job_state === "failed";
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    try {
      await json(path("_reshard", "jobs", of.id), { method: "DELETE" });
      close();
      done();
    } catch (e) {
      setProblem(asProblem(e));
    }
  };
  return (
    <Dialog title="Remove job" close={close}>
      <form onSubmit={submit}>
        <p>{of.job_state === "completed" ? "Only the record of the job goes." : ended ? "The record of the job goes, and what it has copied." : "The job is given up. The shard stays as it was."}</p>
        {problem && <Refusal of={problem} />}
        <div class="buttons">
          <button type="button" onClick={close}>Cancel</button>
          <button class="danger">Remove</button>
        </div>
      </form>
    </Dialog>
  );
}
