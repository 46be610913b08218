// The functions of a view in editors: tried, saved into their design document.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, documentPath, text } from "./api";
import { Problem } from "./api";
import { draftOf, dropDraft, keepDraft, type Draft } from "./draft";
import { short } from "./documents";
import { EditorBox, type EditorHandle } from "./editorbox";
import { designNames } from "./designdoc";
import { get, parts } from "./jsonparts";
import { revOf, withRev } from "./jsontext";
import { asProblem, useLoad } from "./load";
import { Refusal } from "./parts";
import { go, link } from "./route";
import { type Source, blank, blankReduce, builtIn, emptyDesign, same, sourceOf, withView, writtenOf } from "./viewsource";
import { type Tried, sampleSize, tryView } from "./tryview";
import type { User } from "./session";

interface Props {
  db: string;
  ddoc?: string; // none: it is chosen here
  view?: string;
  design?: string; // text of the design document
  user: User;
  saved: (design: string) => void;
  tried: (of: Tried) => void;
}

export function Definition({ db, ddoc, view, design, user, saved, tried }: Props) {
  const of: Draft = { owner: user.name ?? "", db, id: `_view/${ddoc ?? ""}/${view ?? ""}` };
  const base = useRef(design); // the design document that the server has
  const stored = () => (view !== undefined && base.current !== undefined ? sourceOf(base.current, view) : undefined);
  const draft = useRef(writtenOf(draftOf(of)));
  const from = useRef(draft.current ? draft.current.from : stored()); // what was there when this was begun
  const first = useRef(draft.current?.source ?? stored() ?? blank).current;
  const now = useRef<Source>({ ...first });
  const [reduce, setReduce] = useState(first.reduce);
  const [changed, setChanged] = useState(!same(first, stored() ?? blank));
  const [busy, setBusy] = useState("");
  const [note, setNote] = useState("");
  const [problem, setProblem] = useState<Problem>();
  const [restored, setRestored] = useState(draft.current !== undefined);
  const [theirs, setTheirs] = useState(same(from.current, stored()) ? undefined : design); // the design document that somebody else has saved meanwhile
  const map = useRef<EditorHandle | undefined>(undefined);
  const reducer = useRef<EditorHandle | undefined>(undefined);
  const names = useRef<HTMLFormElement>(null);
  const trying = useRef<AbortController | undefined>(undefined);
  const made = useRef(false); // a new view is saved: its draft is over
  useEffect(() => () => trying.current?.abort(), []);

  const current = (): Source => ({ map: map.current?.text() ?? now.current.map, reduce: reducer.current?.text() ?? now.current.reduce });
  const edited = () => {
    if (made.current) return;
    now.current = current();
    const differs = !same(now.current, stored() ?? blank);
    setChanged(differs);
    if (differs) keepDraft(of, JSON.stringify({ source: now.current, from: from.current }));
    else dropDraft(of);
  };
  const written = useRef(blankReduce); // the reduce function that was there before another kind was chosen
  const choose = (kind: string) => {
    const was = current();
    if (was.reduce !== "" && !builtIn.includes(was.reduce)) written.current = was.reduce;
    reducer.current = undefined;
    now.current = { map: was.map, reduce: kind === "custom" ? written.current : kind };
    setReduce(now.current.reduce);
    edited();
  };
  const replace = (by: Source) => {
    now.current = { ...by };
    reducer.current?.replace(by.reduce);
    setReduce(by.reduce);
    map.current?.replace(by.map); // tells edited
    edited();
  };

  /** put writes the view into a design document, as it is now or as its text says. */
  const put = async (into: string, ddoc: string, view: string) => {
    const source = current();
    const body = withView(into, view, source);
    const got = await ask(documentPath(db, "_design/" + ddoc), { method: "PUT", body });
    const { rev } = (await got.json()) as { rev: string };
    dropDraft(of);
    made.current = of.id === "_view//";
    setTheirs(undefined);
    base.current = withRev(body, rev);
    from.current = source;
    setRestored(false);
    setNote(got.status === 202 ? `Accepted as revision ${short(rev)}, not yet by enough copies.` : `Saved as revision ${short(rev)}.`);
    edited(); // what was typed meanwhile stays
    saved(base.current);
  };
  const save = (into?: string) => act("Saving …", async () => {
    if (theirs !== undefined && into === undefined) return; // which one wins is asked
    if (ddoc !== undefined && view !== undefined) return put(into ?? base.current ?? emptyDesign(ddoc), ddoc, view);
    const fields = new FormData(names.current!);
    const [d, v] = [String(fields.get("ddoc")), String(fields.get("view"))];
    if (!names.current!.reportValidity()) return;
    const there = await text(documentPath(db, "_design/" + d)).catch((e) => {
      if (asProblem(e).status === 404) return emptyDesign(d);
      throw e;
    });
    if (get(there, "views", v) !== undefined) throw new Problem(0, "exists", `The design document has a view of that name already.`);
    await put(there, d, v);
    go(link(["view", db, d, v]));
  });
  const refused = async (p: Problem) => {
    if (p.status !== 409 || ddoc === undefined) return setProblem(p);
    try {
      setTheirs(await text(documentPath(db, "_design/" + ddoc)));
    } catch (e) {
      const why = asProblem(e);
      if (why.status !== 404) return setProblem(why);
      base.current = emptyDesign(ddoc);
      setProblem(new Problem(409, "conflict", "Somebody has deleted this design document meanwhile. Save makes it again, with this view only."));
    }
  };
  const act = async (what: string, f: () => Promise<void>) => {
    if (busy) return;
    setBusy(what);
    setProblem(undefined);
    setNote("");
    try {
      await f();
    } catch (e) {
      if (!trying.current?.signal.aborted) await refused(asProblem(e));
    } finally {
      setBusy("");
    }
  };
  const tryNow = () => act("Trying …", async () => {
    trying.current = new AbortController();
    tried(await tryView(db, current(), base.current && get(base.current, "options"), trying.current.signal));
  });

  const custom = reduce !== "" && !builtIn.includes(reduce);
  const views = base.current === undefined ? 0 : parts(get(base.current, "views") ?? "").length;
  const admin = user.roles.includes("_admin");
  return (
    <section class="definition" aria-label="Definition">
      {ddoc === undefined && <Names db={db} form={names} save={() => void save()} />}
      <h2>Map</h2>
      <EditorBox label="Map function" language="javascript" focus={false} text={first.map} handle={map} onChange={edited} onSave={() => void save()} />
      <label class="inline">
        <b>Reduce</b>
        <select aria-label="Reduce function" value={custom ? "custom" : reduce} onChange={(e) => choose(e.currentTarget.value)}>
          <option value="">none</option>
          {builtIn.map((name) => <option key={name} value={name}>{name}</option>)}
          <option value="custom">custom …</option>
        </select>
      </label>
      {custom && <EditorBox label="Reduce function" language="javascript" focus={false} text={now.current.reduce} handle={reducer} onChange={edited} onSave={() => void save()} />}
      {problem && <Refusal of={problem} />}
      {theirs !== undefined && view !== undefined && (
        <Theirs
          design={theirs}
          changed={!same(sourceOf(theirs, view), from.current)}
          take={() => {
            base.current = theirs;
            from.current = sourceOf(theirs, view);
            setTheirs(undefined);
            replace(sourceOf(theirs, view) ?? blank);
            saved(theirs);
          }}
          over={() => void save(theirs)}
        />
      )}
      <div class="buttons">
        <span class="quiet" role="status">{busy || (changed ? (restored ? "The draft from before, not saved" : "Not saved") : note)}</span>
        {admin && <button type="button" disabled={busy !== ""} onClick={() => void tryNow()}>Try on {sampleSize} documents</button>}
        <button type="button" disabled={busy !== "" || theirs !== undefined || !changed || ddoc === undefined} onClick={() => replace(stored() ?? blank)}>Discard changes</button>
        <button type="button" class="main" disabled={busy !== "" || theirs !== undefined || (!changed && stored() !== undefined)} onClick={() => void save()}>Save</button>
      </div>
      <p class="quiet">
        {admin
          ? `“Try” copies the first ${sampleSize} documents, without attachments, into a database console-try-… that only server administrators can read, runs the view there and deletes it.`
          : "Trying a view before it is saved needs a database of its own, which only a server administrator can make."}
        {views > 1 && ` Saving builds the index of all ${views} views of this design document again.`}
      </p>
    </section>
  );
}

/** Names asks for the names of a new view and its design document. */
function Names({ db, form, save }: { db: string; form: { current: HTMLFormElement | null }; save: () => void }) {
  const known = useLoad((signal) => designNames(db, signal), [db]);
  return (
    <form ref={form} class="selection" onSubmit={(e) => (e.preventDefault(), save())}>
      <label>Design document <input name="ddoc" required list="designs" spellcheck={false} autocapitalize="none" placeholder="a new one, or one that exists" /></label>
      <datalist id="designs">{known.value?.map((name) => <option key={name} value={name} />)}</datalist>
      <label>Name of the view <input name="view" required spellcheck={false} autocapitalize="none" /></label>
    </form>
  );
}

function Theirs({ design, changed, take, over }: { design: string; changed: boolean; take: () => void; over: () => void }) {
  return (
    <div class="note" role="alert">
      <p>
        Somebody else has saved revision <code>{short(revOf(design))}</code> of the design document meanwhile.{" "}
        {changed ? "It has other functions for this view." : "This view is the same in it."} What else is in it stays in both cases.
      </p>
      <div class="buttons">
        <button type="button" onClick={take}>Take theirs</button>
        <button type="button" class="main" onClick={over}>Save mine into it</button>
      </div>
    </div>
  );
}
