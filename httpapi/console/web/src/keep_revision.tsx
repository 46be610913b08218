// The end of a conflict: one revision is kept, the other leaves are deleted.
import { useState } from "preact/hooks";
import { Problem, documentPath, json, path, query, write } from "./api";
import { short } from "./documents";
import { asProblem } from "./load";
import { Dialog, Refusal, count } from "./parts";

interface Outcome {
  ok?: boolean;
  accepted?: boolean;
  error?: string;
  reason?: string;
}

interface Props {
  db: string;
  id: string;
  keep: string;
  others: string[]; // the other leaves that are not deleted
  close: () => void;
  done: (told: string) => void;
}

function revisions(n: number): string {
  return `${count(n)} ${n === 1 ? "revision" : "revisions"}`;
}

export function KeepRevision({ db, id, keep, others, close, done }: Props) {
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      // The one to keep may have gone: then the others would leave nothing.
      const now = await json<{ _conflicts?: string[]; _rev: string }>(documentPath(db, id) + query({ conflicts: true }));
      if (now._rev !== keep && !now._conflicts?.includes(keep)) {
        throw new Problem(0, "conflict", "The revision to keep has been changed or deleted meanwhile. Nothing was deleted.");
      }
      const docs = others.map((_rev) => ({ _id: id, _rev, _deleted: true }));
      const { value } = await write<Outcome[]>(path(db, "_bulk_docs"), { method: "POST", body: JSON.stringify({ docs }), writes: true });
      done(told(others, value));
    } catch (e) {
      setProblem(asProblem(e));
      setBusy(false);
    }
  };
  return (
    <Dialog title="Keep one revision" close={close}>
      <form onSubmit={submit}>
        <p><code>{short(keep)}</code> is kept. {revisions(others.length)} in conflict with it {others.length === 1 ? "is" : "are"} deleted:</p>
        <ul class="outcomes" tabIndex={0} aria-label="Revisions to delete">
          {others.map((rev) => <li key={rev}><code>{rev}</code></li>)}
        </ul>
        {problem && <Refusal of={problem} />}
        <div class="buttons">
          <button type="button" onClick={close}>Cancel</button>
          <button class="danger" disabled={busy}>Delete {revisions(others.length)}</button>
        </div>
      </form>
    </Dialog>
  );
}

/** told says what became of the deletions. */
function told(revs: string[], outcomes: Outcome[]): string {
  const refused = outcomes.flatMap((o, i) => (o.ok ? [] : [`${short(revs[i]!)}: ${o.error === "conflict" ? "somebody has changed it meanwhile" : o.reason || o.error}`]));
  const accepted = outcomes.filter((o) => o.accepted).length;
  const said = [`${revisions(outcomes.length - refused.length)} deleted.`];
  if (accepted > 0) said.push(`Of ${revisions(accepted)} the deletion is accepted, and fewer copies than asked have it yet.`);
  if (refused.length > 0) said.push(`Not deleted: ${refused.join("; ")}.`);
  return said.join(" ");
}
