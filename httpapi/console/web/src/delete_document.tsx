// The deletion of one document.
import { useState } from "preact/hooks";
import { documentPath, query, write } from "./api";
import { dropDraft, type Draft } from "./draft";
import { short } from "./documents";
import { asProblem } from "./load";
import { Dialog, Name, Refusal } from "./parts";
import { go, link } from "./route";
import type { Problem } from "./api";

interface Props {
  of: Draft;
  id: string;
  rev: string;
  close: () => void;
  changed: () => void; // somebody else has changed or deleted the document meanwhile
}

export function DeleteDocument({ of, id, rev, close, changed }: Props) {
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const [accepted, setAccepted] = useState(false);
  const leave = () => {
    close();
    go(link(["db", of.db]));
  };
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    if (busy) return;
    setBusy(true);
    setProblem(undefined);
    try {
      const answer = await write(documentPath(of.db, id) + query({ rev }), { method: "DELETE" });
      dropDraft(of);
      if (answer.accepted) setAccepted(true);
      else leave();
    } catch (e) {
      const p = asProblem(e);
      if (p.status === 409 || p.status === 404) changed();
      else setProblem(p);
      setBusy(false);
    }
  };
  if (accepted) {
    return (
      <Dialog title="Deletion accepted" close={leave}>
        <p>Fewer copies than asked know of it yet. The others will.</p>
        <div class="buttons"><button type="button" class="main" onClick={leave}>Close</button></div>
      </Dialog>
    );
  }
  return (
    <Dialog title="Delete document" close={close}>
      <form onSubmit={submit}>
        <p>
          <b><Name of={id} /></b> is deleted, at revision <code>{short(rev)}</code>.
        </p>
        {problem && <Refusal of={problem} />}
        <div class="buttons">
          <button type="button" onClick={close}>Cancel</button>
          <button class="danger" disabled={busy}>Delete</button>
        </div>
      </form>
    </Dialog>
  );
}
