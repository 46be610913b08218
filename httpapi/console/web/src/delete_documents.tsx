// The deletion of many documents at once.
import { useState } from "preact/hooks";
import { path, write } from "./api";
import { asProblem } from "./load";
import { Dialog, Name, Refusal, count } from "./parts";
import type { Problem } from "./api";

interface Outcome {
  id: string;
  ok?: boolean;
  accepted?: boolean;
  error?: string;
  reason?: string;
}

interface Props {
  db: string;
  revs: Map<string, string>; // of the documents, by the ids
  close: (done: boolean) => void;
}

function documents(n: number): string {
  return `${count(n)} ${n === 1 ? "document" : "documents"}`;
}

export function DeleteDocuments({ db, revs, close }: Props) {
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const [outcomes, setOutcomes] = useState<Outcome[]>();
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      const docs = [...revs].map(([_id, _rev]) => ({ _id, _rev, _deleted: true }));
      const { value } = await write<Outcome[]>(path(db, "_bulk_docs"), { method: "POST", body: JSON.stringify({ docs }), writes: true });
      if (value.every((o) => o.ok && !o.accepted)) close(true);
      else setOutcomes(value);
    } catch (e) {
      setProblem(asProblem(e));
    }
    setBusy(false);
  };
  if (outcomes) {
    const refused = outcomes.filter((o) => !o.ok);
    const accepted = outcomes.filter((o) => o.ok && o.accepted).length;
    return (
      <Dialog title={`${documents(outcomes.length - refused.length)} deleted`} close={() => close(true)}>
        {accepted > 0 && <p class="note">Of {documents(accepted)} the deletion is accepted, and fewer copies than asked have it yet.</p>}
        {refused.length > 0 && <p>{documents(refused.length)} {refused.length === 1 ? "is" : "are"} still there:</p>}
        <ul class="outcomes" tabIndex={0} aria-label="Not deleted">
          {refused.map((o) => (
            <li key={o.id}><Name of={o.id} /> <span class="quiet">{o.error === "conflict" ? "somebody has changed it meanwhile" : o.reason || o.error}</span></li>
          ))}
        </ul>
        <div class="buttons"><button type="button" class="main" onClick={() => close(true)}>Close</button></div>
      </Dialog>
    );
  }
  const ids = [...revs.keys()];
  return (
    <Dialog title={`Delete ${documents(revs.size)}`} close={() => close(false)}>
      <form onSubmit={submit}>
        <ul class="outcomes" tabIndex={0} aria-label="Documents to delete">
          {ids.map((id) => <li key={id}><Name of={id} /></li>)}
        </ul>
        <p>{documents(revs.size)} {revs.size === 1 ? "is" : "are"} deleted, at the revisions that were shown. Those that somebody has changed since stay.</p>
        {problem && <Refusal of={problem} />}
        <div class="buttons">
          <button type="button" onClick={() => close(false)}>Cancel</button>
          <button class="danger" disabled={busy}>Delete {documents(revs.size)}</button>
        </div>
      </form>
    </Dialog>
  );
}
