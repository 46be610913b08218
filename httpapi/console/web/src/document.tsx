// One document: its text in an editor, saved, deleted; what somebody else saved meanwhile beside it.
import { useEffect, useRef, useState } from "preact/hooks";
import { documentPath, json, path, query, text } from "./api";
import { Problem } from "./api";
import { DocumentNavigation } from "./document_navigation";
import { documentParts, type DocumentParts } from "./document_parts";
import { EditorBox, type EditorHandle } from "./editorbox";
import { layOut, revOf, withRev } from "./jsontext";
import { asProblem, useLoad } from "./load";
import { Dialog, Name, Refusal, Title } from "./parts";
import { short } from "./documents";
import { draftOf, dropDraft, keepDraft, type Draft } from "./draft";
import { go, link } from "./route";
import type { User } from "./session";

interface Saved {
  id: string;
  rev: string;
}

/** load returns the text of a document and what it says; of a new one, a text to begin with. */
async function load(db: string, id: string | undefined, signal: AbortSignal): Promise<DocumentParts> {
  if (id !== undefined) {
    const parts = documentParts(await text(documentPath(db, id) + query({ conflicts: true }), { signal }));
    return { ...parts, text: layOut(parts.text) };
  }
  const { uuids } = await json<{ uuids: string[] }>("_uuids", { signal });
  return { text: `{\n  "_id": ${JSON.stringify(uuids[0])}\n}`, conflicts: 0, attachments: 0 };
}

/** Document shows a document, or makes a new one when there is no id. */
export function Document({ db, id, user }: { db: string; id?: string; user: User }) {
  const stored = useLoad((signal) => load(db, id, signal), [db, id, user.name]);
  const name = id ?? "New document";
  return (
    <main class="full">
      {id === undefined && <p class="crumbs"><a href={link(["db", db])}><Name of={db} /></a></p>}
      {id !== undefined && <DocumentNavigation db={db} id={id} kind="doc" conflicts={stored.value?.conflicts} attachments={stored.value?.attachments} />}
      {stored.problem && (
        <>
          <Title text={name} />
          <Refusal of={stored.problem} again={stored.again} />
        </>
      )}
      {!stored.problem && stored.value === undefined && (
        <>
          <Title text={name} />
          <p class="quiet" role="status">Loading …</p>
        </>
      )}
      {stored.value !== undefined && <Editing key={stored.value.text} of={{ owner: user.name ?? "", db, id }} stored={stored.value.text} reload={stored.again} />}
    </main>
  );
}

interface Editing {
  of: Draft;
  stored: string;
  reload: () => void;
}

function Editing({ of, stored, reload }: Editing) {
  const { db, id } = of;
  const draft = useRef(draftOf(of));
  const first = draft.current ?? stored;
  const editor = useRef<EditorHandle | undefined>(undefined);
  const base = useRef(stored); // the text that the server has
  const saving = useRef(false);
  const [changed, setChanged] = useState(first !== stored);
  const [note, setNote] = useState(draft.current !== undefined && draft.current !== stored ? "This is the draft from before, which was not saved." : "");
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const [kept, setKept] = useState(true); // the draft is
  const here = useRef(true);
  useEffect(() => () => {
    here.current = false;
  }, []);
  const [theirs, setTheirs] = useState<string>(); // what somebody else has saved meanwhile
  const [deleting, setDeleting] = useState(false);

  useEffect(() => {
    if (!changed) return;
    const stay = (e: BeforeUnloadEvent) => keepDraft(of, editor.current?.text() ?? first) || e.preventDefault();
    addEventListener("beforeunload", stay);
    return () => removeEventListener("beforeunload", stay);
  }, [changed]);

  const edited = (now: string) => {
    setChanged(now !== base.current);
    if (now === base.current) dropDraft(of);
    else setKept(keepDraft(of, now));
  };

  /** replace puts the text that is stored now into the editor. */
  const replace = (now: string) => {
    base.current = now;
    setTheirs(undefined);
    editor.current?.replace(now); // tells edited
  };

  const save = async (body: string) => {
    if (saving.current) return;
    saving.current = true;
    setBusy(true);
    setProblem(undefined);
    setNote("");
    try {
      const saved = id === undefined
        ? await json<Saved>(path(db), { method: "POST", body })
        : await json<Saved>(documentPath(db, id), { method: "PUT", body });
      if (id === undefined) {
        base.current = editor.current?.text() ?? body;
        dropDraft(of);
        if (here.current) go(link(["doc", db, saved.id]));
        return;
      }
      // What was typed while it was saved stays, as a change of what is stored now.
      const now = editor.current?.text() ?? body;
      base.current = withRev(body, saved.rev);
      setTheirs(undefined);
      setNote(`Saved as revision ${short(saved.rev)}.`);
      if (editor.current) editor.current.replace(withRev(now, saved.rev)); // tells edited
      else if (draftOf(of) === body) dropDraft(of);
    } catch (e) {
      await refused(asProblem(e), body);
    } finally {
      saving.current = false;
      setBusy(false);
    }
  };

  const refused = async (p: Problem, body: string) => {
    if (p.status !== 409 || id === undefined) {
      setProblem(p);
      return;
    }
    try {
      const stored = layOut(await text(documentPath(db, id)));
      if (withRev(stored, "") !== withRev(layOut(body), "")) setTheirs(stored);
      else replace(stored); // it was saved before, and the answer was lost
    } catch (e) {
      const why = asProblem(e);
      setProblem(why.status === 404 ? new Problem(409, "conflict", "Somebody has deleted this document meanwhile.") : why);
    }
  };

  const saveNow = () => void save(editor.current?.text() ?? first);

  return (
    <>
      <header class="bar">
        <Title text={id ?? "New document"} />
        <span class="quiet" role="status">{busy ? "Saving …" : changed ? "Not saved" : note}</span>
        {id !== undefined && <button type="button" class="danger" onClick={() => setDeleting(true)}>Delete</button>}
        <button type="button" disabled={!changed || busy} onClick={() => replace(base.current)}>Discard changes</button>
        <button type="button" class="main" disabled={busy || (!changed && id !== undefined)} onClick={saveNow}>Save</button>
      </header>
      {changed && note && <p class="note">{note}</p>}
      {changed && !kept && <p class="note">This text is too large to be kept over a reload of the page. Save it before you leave.</p>}
      {problem && <Refusal of={problem} again={problem.status === 0 ? saveNow : undefined} />}
      {theirs !== undefined && (
        <div class="note" role="alert">
          <p>
            Somebody else has saved revision <code>{short(revOf(theirs))}</code> meanwhile. Yours is on the left, theirs on the right.
          </p>
          <div class="buttons">
            <button type="button" disabled={busy} onClick={() => replace(theirs)}>Take theirs</button>
            <button type="button" class="main" disabled={busy} onClick={() => void save(withRev(editor.current?.text() ?? first, revOf(theirs)))}>Save mine over theirs</button>
          </div>
        </div>
      )}
      <div class={theirs === undefined ? "editors" : "editors two"}>
        <EditorBox label="Document" text={first} handle={editor} onChange={edited} onSave={saveNow} />
        {theirs !== undefined && <EditorBox key={theirs} label="What somebody else has saved" text={theirs} readOnly />}
      </div>
      {deleting && id !== undefined && (
        <DeleteDocument of={of} id={id} rev={revOf(base.current)} close={() => setDeleting(false)} reload={reload} />
      )}
    </>
  );
}

function DeleteDocument({ of, id, rev, close, reload }: { of: Draft; id: string; rev: string; close: () => void; reload: () => void }) {
  const [problem, setProblem] = useState<Problem>();
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    try {
      await json(documentPath(of.db, id) + query({ rev }), { method: "DELETE" });
      dropDraft(of);
      close();
      go(link(["db", of.db]));
    } catch (e) {
      const p = asProblem(e);
      setProblem(p);
      if (p.status === 409) reload(); // the newest one is shown before anything is deleted
    }
  };
  return (
    <Dialog title="Delete document" close={close}>
      <form onSubmit={submit}>
        <p>
          <b><Name of={id} /></b> is deleted, at revision <code>{short(rev)}</code>.
        </p>
        {problem && <Refusal of={problem} />}
        <div class="buttons">
          <button type="button" onClick={close}>Cancel</button>
          <button class="danger">Delete</button>
        </div>
      </form>
    </Dialog>
  );
}
