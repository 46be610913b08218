// Replications: those of documents, and those that were asked for without one.
import { useState } from "preact/hooks";
import { documentPath, json, path, query, type Problem } from "./api";
import { asProblem } from "./load";
import { Dialog, Name, Refusal, Title } from "./parts";
import { usePolled } from "./poll";
import { errorOf, failures, isBad, jobState, progressOf, stateWords, type Job, type ReplicationDoc } from "./replicationrows";
import { link, type Place } from "./route";
import { when } from "./words";

const pageSize = 50;
const mostJobs = 500;

interface Loaded {
  docs: ReplicationDoc[];
  jobs: Job[];
  total: number; // jobs, those of documents too
}

/** load returns a page of documents, and jobs without a document. */
async function load(db: string, from: string, signal: AbortSignal): Promise<Loaded> {
  const startkey = from === "" ? undefined : JSON.stringify(from);
  const { docs } = await json<{ docs: ReplicationDoc[] }>(path("_scheduler", "docs", db) + query({ limit: pageSize + 1, startkey }), { signal });
  const jobs = await json<{ jobs: Job[]; total_rows: number }>("_scheduler/jobs" + query({ limit: mostJobs }), { signal });
  return { docs, jobs: jobs.jobs.filter((j) => j.doc_id === null), total: jobs.total_rows };
}

/** Ending is a replication that somebody wants to end. */
type Ending = { doc: ReplicationDoc } | { job: Job };

export function Replications({ place }: { place: Place }) {
  const db = place.params.get("db") ?? "_replicator";
  const from = place.params.get("from") ?? "";
  const all = usePolled((signal) => load(db, from, signal), 5000, [db, from]);
  const [ending, setEnding] = useState<Ending>();
  const docs = all.value?.docs.slice(0, pageSize) ?? [];
  const jobs = all.value?.jobs ?? [];
  const next = all.value?.docs[pageSize]?.doc_id;
  const dbParam = db === "_replicator" ? undefined : db;
  return (
    <main>
      <header class="bar">
        <Title text="Replications">Replications</Title>
        <a class="button main" href={link(["replicate"])}>New replication</a>
      </header>
      {dbParam && <p>Of the documents in <a href={link(["db", db])}><Name of={db} /></a></p>}
      {all.problem && <Refusal of={all.problem} again={all.again} />}
      {!all.value && all.loading && <p class="quiet" role="status">Loading …</p>}
      {all.value && docs.length === 0 && <p class="quiet">{from ? "No replications from here on." : "No document asks for a replication."}</p>}
      {docs.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="List of replications">
          <table>
            <thead>
              <tr>
                <th scope="col">Document</th>
                <th scope="col">From → to</th>
                <th scope="col">State</th>
                <th scope="col"><span class="unseen">Actions</span></th>
              </tr>
            </thead>
            <tbody>
              {docs.map((d) => (
                <tr key={d.doc_id}>
                  <th scope="row"><a href={link(["doc", d.database, d.doc_id])}><Name of={d.doc_id} /></a></th>
                  <Way source={d.source} target={d.target} />
                  <td class="wraps">
                    <span class={isBad(d.state) ? "failed" : ""}>{stateWords(d.state)}</span>
                    {progressOf(d.info) && <p class="quiet">{progressOf(d.info)}</p>}
                    {errorOf(d.info) && <p class="failed"><Name of={errorOf(d.info)} /></p>}
                    <p class="quiet">{[failures(d.error_count), when(d.last_updated)].filter(Boolean).join(", ")}</p>
                  </td>
                  <td class="number"><button type="button" class="danger" onClick={() => setEnding({ doc: d })}>Cancel …</button></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <nav class="pages" aria-label="Pages">
        {from !== "" && <a href={link(["replications"], { db: dbParam })}>First page</a>}
        {next !== undefined && <a href={link(["replications"], { db: dbParam, from: next })}>Next page</a>}
      </nav>
      {jobs.length > 0 && (
        <section class="group">
          <h2>Without a document</h2>
          <div class="scroll" tabIndex={0} role="region" aria-label="Replications without a document">
            <table>
              <thead>
                <tr>
                  <th scope="col">Account</th>
                  <th scope="col">From → to</th>
                  <th scope="col">State</th>
                  <th scope="col"><span class="unseen">Actions</span></th>
                </tr>
              </thead>
              <tbody>{jobs.map((j) => <JobRow key={j.id} of={j} end={() => setEnding({ job: j })} />)}</tbody>
            </table>
          </div>
        </section>
      )}
      {all.value && all.value.total > mostJobs && <p class="note">Of replications without a document, those among the first {mostJobs} jobs are shown.</p>}
      {ending && <Cancel of={ending} close={() => setEnding(undefined)} again={all.again} />}
    </main>
  );
}

function Way({ source, target }: { source: string | null; target: string | null }) {
  return (
    <td class="wraps">
      <Name of={source ?? "?"} /> <span class="quiet">→</span> <Name of={target ?? "?"} />
    </td>
  );
}

function JobRow({ of, end }: { of: Job; end: () => void }) {
  const { words, error } = jobState(of);
  return (
    <tr>
      <th scope="row">{of.user ? <Name of={of.user} /> : <span class="quiet">nobody</span>}</th>
      <Way source={of.source} target={of.target} />
      <td class="wraps">
        <span class={error ? "failed" : ""}>{words}</span>
        {progressOf(of.info) && <p class="quiet">{progressOf(of.info)}</p>}
        {error && <p class="failed"><Name of={error} /></p>}
        <p class="quiet">since {when(of.start_time)} on <Name of={of.node} /></p>
      </td>
      <td class="number"><button type="button" class="danger" onClick={end}>Cancel …</button></td>
    </tr>
  );
}

async function cancel(of: Ending): Promise<void> {
  if ("job" in of) {
    await json("_replicate", { method: "POST", body: JSON.stringify({ replication_id: of.job.id, cancel: true }), writes: true });
    return;
  }
  const to = documentPath(of.doc.database, of.doc.doc_id);
  const { _rev } = await json<{ _rev: string }>(to);
  await json(to + query({ rev: _rev }), { method: "DELETE" });
}

function Cancel({ of, close, again }: { of: Ending; close: () => void; again: () => void }) {
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    setBusy(true);
    try {
      await cancel(of);
      close();
      again();
    } catch (e) {
      setProblem(asProblem(e));
      setBusy(false);
    }
  };
  return (
    <Dialog title="Cancel replication" close={close}>
      <form onSubmit={submit}>
        {"doc" in of
          ? <p>The document <b><Name of={of.doc.doc_id} /></b> is deleted, and its replication ends.</p>
          : <p>The replication from <b><Name of={of.job.source} /></b> to <b><Name of={of.job.target} /></b> ends.</p>}
        <p>What has been written stays in the target.</p>
        {problem && <Refusal of={problem} />}
        <div class="buttons">
          <button type="button" onClick={close}>Keep it</button>
          <button class="danger" disabled={busy}>Cancel the replication</button>
        </div>
      </form>
    </Dialog>
  );
}
