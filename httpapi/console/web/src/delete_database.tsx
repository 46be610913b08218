// The deletion of a database.
import { useState } from "preact/hooks";
import { json, path } from "./api";
import { asProblem } from "./load";
import { Dialog, Refusal, visible } from "./parts";
import { go, link } from "./route";
import type { Problem } from "./api";

export function DeleteDatabase({ db, close }: { db: string; close: () => void }) {
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const [typed, setTyped] = useState("");
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    if (busy) return;
    setBusy(true);
    try {
      await json(path(db), { method: "DELETE" });
      close();
      go(link([]));
    } catch (e) {
      setProblem(asProblem(e));
      setBusy(false);
    }
  };
  return (
    <Dialog title="Delete database" close={close}>
      <form onSubmit={submit}>
        <p>
          <b>{visible(db)}</b> and all its documents are deleted, on every node. This cannot be undone.
        </p>
        <label>
          Its name, to be sure <input value={typed} onInput={(e) => setTyped(e.currentTarget.value)} spellcheck={false} autocapitalize="none" />
        </label>
        {problem && <Refusal of={problem} />}
        <div class="buttons">
          <button type="button" onClick={close}>Cancel</button>
          <button class="danger" disabled={busy || typed !== db}>Delete</button>
        </div>
      </form>
    </Dialog>
  );
}
