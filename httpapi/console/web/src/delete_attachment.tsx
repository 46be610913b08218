// The deletion of an attachment.
import { useState } from "preact/hooks";
import { query, write } from "./api";
import { attachmentPath } from "./attachment";
import { asProblem } from "./load";
import { Dialog, Name, Refusal } from "./parts";
import type { Problem } from "./api";
import type { Target } from "./upload_queue";

interface Props extends Target {
  name: string;
  rev: string;
  close: () => void;
  done: (told: string) => void;
}

export function DeleteAttachment({ db, id, name, rev, close, done }: Props) {
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    if (busy) return;
    setBusy(true);
    try {
      const { accepted } = await write(attachmentPath(db, id, name) + query({ rev }), { method: "DELETE" });
      done(accepted ? "The deletion is accepted, and fewer copies than asked have it yet." : "");
    } catch (e) {
      const p = asProblem(e);
      if (p.status === 409) done("Nothing was deleted: somebody has changed the document meanwhile. This is what it has now.");
      else setProblem(p);
      setBusy(false);
    }
  };
  return (
    <Dialog title="Delete attachment" close={close}>
      <form onSubmit={submit}>
        <p><b><Name of={name} /></b> is deleted. The document gets a new revision without it.</p>
        {problem && <Refusal of={problem} />}
        <div class="buttons">
          <button type="button" onClick={close}>Cancel</button>
          <button class="danger" disabled={busy}>Delete</button>
        </div>
      </form>
    </Dialog>
  );
}
