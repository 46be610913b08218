// One document: its text in an editor, saved, deleted; what somebody else saved meanwhile beside it.
import { useEffect, useRef, useState } from "preact/hooks";
import { documentPath, json, path, query, text } from "./api";
import { Problem } from "./api";
import { EditorBox, type EditorHandle } from "./editorbox";
import { layOut, withRev } from "./jsontext";
import { asProblem, useLoad } from "./load";
import { Dialog, Name, Refusal, Title } from "./parts";
import { short } from "./documents";
import { draftOf, dropDraft, keepDraft } from "./draft";
import { go, link } from "./route";
import type { User } from "./session";

interface Saved {
  id: string;
  rev: string;
}

/** load returns the text of a document; of a new one, a text to begin with. */
async function load(db: string, id: string | undefined, signal: AbortSignal): Promise<string> {
  if (id !== undefined) return layOut(await text(documentPath(db, id), { signal }));
  const { uuids } = await json<{ uuids: string[] }>("_uuids", { signal });
  return `{\n  "_id": ${JSON.stringify(uuids[0])}\n}`;
}

/** Document shows a document, or makes a new one when there is no id. */
export function Document({ db, id, user }: { db: string; id?: string; user: User }) {
  const stored = useLoad((signal) => load(db, id, signal), [db, id, user.name]);
  const name = id ?? "New document";
  return (
    <main class="full">
      <p class="crumbs">
        <a href={link(["db", db], { from: id })}><Name of={db} /></a>
      </p>
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
      {stored.value !== undefined && <Editing key={stored.value} db={db} id={id} stored={stored.value} reload={stored.again} />}
    </main>
  );
}

interface Editing {
  db: string;
  id?: string;
  stored: string;
  reload: () => void;
}

function Editing({ db, id, stored, reload }: Editing) {
  const draft = useRef(draftOf(db, id));
  const first = draft.current ?? stored;
  const editor = useRef<EditorHandle | undefined>(undefined);
  const [base, setBase] = useState(stored); // the text that the server has
  const [changed, setChanged] = useState(first !== stored);
  const [note, setNote] = useState(draft.current !== undefined && draft.current !== stored ? "This is the draft from before, which was not saved." : "");
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const [theirs, setTheirs] = useState<string>(); // what somebody else has saved meanwhile
  const [deleting, setDeleting] = useState(false);

  useEffect(() => {
    if (!changed) return;
    const stay = (e: BeforeUnloadEvent) => keepDraft(db, id, editor.current?.text() ?? first) || e.preventDefault();
    addEventListener("beforeunload", stay);
    return () => removeEventListener("beforeunload", stay);
  }, [changed]);

  const edited = (now: string) => {
    setChanged(now !== base);
    if (now === base) dropDraft(db, id);
    else keepDraft(db, id, now);
  };

  /** replace puts another text into the editor that is the stored one. */
  const replace = (now: string) => {
    setBase(now);
    setChanged(false);
    setTheirs(undefined);
    dropDraft(db, id);
    editor.current?.replace(now);
  };

  const save = async (body: string) => {
    setBusy(true);
    setProblem(undefined);
    setNote("");
    try {
      const saved = id === undefined
        ? await json<Saved>(path(db), { method: "POST", body })
        : await json<Saved>(documentPath(db, id), { method: "PUT", body });
      dropDraft(db, id);
      if (id === undefined) {
        go(link(["doc", db, saved.id]));
        return;
      }
      replace(withRev(body, saved.rev));
      setNote(`Saved as revision ${short(saved.rev)}.`);
    } catch (e) {
      await refused(asProblem(e));
    } finally {
      setBusy(false);
    }
  };

  const refused = async (p: Problem) => {
    if (p.status !== 409 || id === undefined) {
      setProblem(p);
      return;
    }
    try {
      setTheirs(layOut(await text(documentPath(db, id))));
    } catch (e) {
      const why = asProblem(e);
      setProblem(why.status === 404 ? new Problem(409, "conflict", "Somebody has deleted this document meanwhile.") : why);
    }
  };

  const saveNow = () => void save(editor.current?.text() ?? first);
  const revision = (of: string) => /^\s*\{[^]*?"_rev"\s*:\s*"([^"]+)"/.exec(of)?.[1] ?? "";

  return (
    <>
      <header class="bar">
        <Title text={id ?? "New document"} />
        <span class="quiet" role="status">{busy ? "Saving …" : changed ? "Not saved" : note}</span>
        {id !== undefined && <button type="button" class="danger" onClick={() => setDeleting(true)}>Delete</button>}
        <button type="button" disabled={!changed || busy || id === undefined} onClick={() => replace(base)}>Discard changes</button>
        <button type="button" class="main" disabled={busy || (!changed && id !== undefined)} onClick={saveNow}>Save</button>
      </header>
      {changed && note && <p class="note">{note}</p>}
      {problem && <Refusal of={problem} again={problem.status === 0 ? saveNow : undefined} />}
      {theirs !== undefined && (
        <div class="note" role="alert">
          <p>
            Somebody else has saved revision <code>{short(revision(theirs))}</code> meanwhile. Yours is on the left, theirs on the right.
          </p>
          <div class="buttons">
            <button type="button" onClick={() => replace(theirs)}>Take theirs</button>
            <button type="button" class="main" onClick={() => void save(withRev(editor.current?.text() ?? first, revision(theirs)))}>Save mine over theirs</button>
          </div>
        </div>
      )}
      <div class={theirs === undefined ? "editors" : "editors two"}>
        <EditorBox label="Document" text={first} handle={editor} onChange={edited} onSave={saveNow} />
        {theirs !== undefined && <EditorBox key={theirs} label="What somebody else has saved" text={theirs} readOnly />}
      </div>
      {deleting && id !== undefined && (
        <DeleteDocument db={db} id={id} rev={revision(base)} close={() => setDeleting(false)} reload={reload} />
      )}
    </>
  );
}

function DeleteDocument({ db, id, rev, close, reload }: { db: string; id: string; rev: string; close: () => void; reload: () => void }) {
  const [problem, setProblem] = useState<Problem>();
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    try {
      await json(documentPath(db, id) + query({ rev }), { method: "DELETE" });
      dropDraft(db, id);
      close();
      go(link(["db", db]));
    } catch (e) {
      const p = asProblem(e);
      setProblem(p);
      if (p.status === 409) reload();
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
