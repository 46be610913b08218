// A new function of a design document: of which kind, and its name.
import { useState } from "preact/hooks";
import { kinds } from "./functionkinds";
import { Dialog } from "./parts";
import { go, link } from "./route";

export function NewFunction({ db, designs, close }: { db: string; designs: string[]; close: () => void }) {
  const [kind, setKind] = useState("indexes");
  const submit = (e: SubmitEvent) => {
    e.preventDefault();
    const fields = new FormData(e.currentTarget as HTMLFormElement);
    const [ddoc, name] = [String(fields.get("ddoc")), String(fields.get("name") ?? "")];
    close();
    go(kind === "validate_doc_update" ? link(["function", db, ddoc, kind]) : link(["function", db, ddoc, kind, name]));
  };
  return (
    <Dialog title="New function" close={close}>
      <form onSubmit={submit}>
        <label>
          Kind
          <select value={kind} onChange={(e) => setKind(e.currentTarget.value)}>
            {Object.entries(kinds).map(([of, k]) => <option key={of} value={of}>{k!.one}</option>)}
          </select>
        </label>
        <label>Design document <input name="ddoc" required list="designs" spellcheck={false} autocapitalize="none" placeholder="a new one, or one that exists" /></label>
        <datalist id="designs">{designs.map((d) => <option key={d} value={d} />)}</datalist>
        {kind !== "validate_doc_update" && <label>Name of the function <input name="name" required spellcheck={false} autocapitalize="none" /></label>}
        <p class="quiet">It is written next, and there when it is saved.</p>
        <div class="buttons">
          <button type="button" onClick={close}>Cancel</button>
          <button class="main">Write it</button>
        </div>
      </form>
    </Dialog>
  );
}
