// The indexes of queries by selector: which there are, a new one, one less.
import { useState } from "preact/hooks";
import { json, path, query } from "./api";
import { asProblem, useLoad } from "./load";
import { fieldsOf, shortName } from "./mangoexplain";
import { Dialog, Name, Refusal, count, visible } from "./parts";
import type { Problem } from "./api";

interface Index {
  ddoc: string | null; // none: of all documents, always there
  name: string;
  type: string;
  def: { fields?: unknown; partial_filter_selector?: unknown };
}

const mostShown = 200;

export function Indexes({ db, turn, make }: { db: string; turn: number; make: () => void }) {
  const [deleted, setDeleted] = useState(0);
  const [deleting, setDeleting] = useState<Index>();
  const list = useLoad((signal) => json<{ total_rows: number; indexes: Index[] }>(path(db, "_index") + query({ limit: mostShown }), { signal }), [db, turn, deleted]);
  return (
    <section class="indexes" aria-label="Indexes">
      <header class="bar">
        <h2>Indexes</h2>
        <button type="button" onClick={make}>New index</button>
      </header>
      {list.problem && <Refusal of={list.problem} again={list.again} />}
      {list.value && (
        <div class="scroll" tabIndex={0} role="region" aria-label="List of indexes">
          <table>
            <thead>
              <tr><th scope="col">Name</th><th scope="col">Kind</th><th scope="col">Fields</th><th scope="col"><span class="unseen">Delete</span></th></tr>
            </thead>
            <tbody>
              {list.value.indexes.map((i) => (
                <tr key={`${i.ddoc} ${i.type} ${i.name}`}>
                  <th scope="row" title={i.ddoc === null ? undefined : visible(`${i.ddoc}, ${i.name}`)}><Name of={shortName(i.name)} /></th>
                  <td>{i.type}{i.def.partial_filter_selector !== undefined && ", partial"}</td>
                  <td>{fieldsOf(i.def).map(visible).join(", ") || "all"}</td>
                  <td class="number">
                    {i.ddoc !== null && <button type="button" class="small" aria-label={`Delete index ${visible(i.name)}`} onClick={() => setDeleting(i)}>Delete</button>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {list.value && list.value.total_rows > mostShown && <p class="quiet">The first {mostShown} of {count(list.value.total_rows)}.</p>}
      {deleting && <DeleteIndex db={db} of={deleting} close={() => setDeleting(undefined)} done={() => setDeleted((n) => n + 1)} />}
    </section>
  );
}

function DeleteIndex({ db, of, close, done }: { db: string; of: Index; close: () => void; done: () => void }) {
  const [problem, setProblem] = useState<Problem>();
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    try {
      await json(`${path(db, "_index")}/_design/${path(of.ddoc!.slice("_design/".length), of.type, of.name)}`, { method: "DELETE" });
      close();
      done();
    } catch (e) {
      setProblem(asProblem(e));
    }
  };
  return (
    <Dialog title="Delete index" close={close}>
      <form onSubmit={submit}>
        <p>The index <b><Name of={of.name} /></b> of <Name of={of.ddoc!} /> is deleted. Documents stay; queries that need it become slow, or are refused when they sort.</p>
        {problem && <Refusal of={problem} />}
        <div class="buttons">
          <button type="button" onClick={close}>Cancel</button>
          <button class="danger">Delete</button>
        </div>
      </form>
    </Dialog>
  );
}

/** definition returns the text of the request that makes an index. */
function definition(fields: FormData): string {
  const given = (name: string) => String(fields.get(name) ?? "").trim();
  const type = given("type");
  const names = given("fields").split(/[\n,]/).map((f) => f.trim()).filter((f) => f !== "");
  const of = type === "json" ? names : names.map((f) => {
    const [, name = f, kind = "string"] = /^(.*?)\s*:\s*(\w+)$/.exec(f) ?? [];
    return { name, type: kind };
  });
  const members = [type !== "json" && of.length === 0 ? "" : `"fields":${JSON.stringify(of)}`];
  if (given("partial") !== "") members.push(`"partial_filter_selector":${given("partial")}`); // as it was written: the server reads it
  const rest = { type, name: given("name") || undefined, ddoc: given("ddoc") || undefined };
  return `${JSON.stringify(rest).slice(0, -1)},"index":{${members.filter((m) => m !== "").join(",")}}}`;
}

export function NewIndex({ db, fields, close, made }: { db: string; fields: string[]; close: () => void; made: () => void }) {
  const [problem, setProblem] = useState<Problem>();
  const [note, setNote] = useState("");
  const [type, setType] = useState("json");
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    setProblem(undefined);
    setNote("");
    try {
      const body = definition(new FormData(e.currentTarget as HTMLFormElement));
      const { result, name } = await json<{ result: string; name: string }>(path(db, "_index"), { method: "POST", body, writes: true });
      if (result === "exists") {
        setNote(`There is such an index already: ${name}.`);
        return;
      }
      close();
      made();
    } catch (e) {
      setProblem(asProblem(e));
    }
  };
  return (
    <Dialog title="New index" close={close}>
      <form onSubmit={submit}>
        <label>
          Kind
          <select name="type" value={type} onChange={(e) => setType(e.currentTarget.value)}>
            <option value="json">json: equality, ranges and order</option>
            <option value="text">text: words in texts, and all fields at once</option>
            <option value="nouveau">nouveau: as text</option>
          </select>
        </label>
        <label>
          Fields, one on a line
          <textarea name="fields" rows={4} required={type === "json"} defaultValue={fields.join("\n")} spellcheck={false} aria-describedby="fields-rule" />
        </label>
        <p id="fields-rule" class="quiet">
          {type === "json"
            ? "First those that queries compare with one value, then those that they sort by or want a range of. Documents without one of them are not in the index."
            : "As name:string, name:number or name:boolean. None: all fields."}
        </p>
        <details>
          <summary>Name, and documents that it holds</summary>
          <label>Name <input name="name" placeholder="made of the definition" spellcheck={false} autocapitalize="none" /></label>
          <label>Design document <input name="ddoc" placeholder="made of the definition" spellcheck={false} autocapitalize="none" /></label>
          <label>Only documents that match this selector <textarea name="partial" rows={3} placeholder={'{"status": "open"}'} spellcheck={false} /></label>
        </details>
        {problem && <Refusal of={problem} />}
        {note && <p class="note" role="status">{visible(note)}</p>}
        <div class="buttons">
          <button type="button" onClick={close}>Cancel</button>
          <button class="main">Create</button>
        </div>
      </form>
    </Dialog>
  );
}
