// One document: its text in an editor, saved, deleted; what somebody else saved meanwhile beside it.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Problem, documentPath, json, path, query, text, write } from "./api";
import { OtherNote, TheirsNote } from "./both_texts";
import { DeleteDocument } from "./delete_document";
import { DocumentNavigation } from "./document_navigation";
import { documentParts, type DocumentParts } from "./document_parts";
import { EditorBox, type EditorHandle } from "./editorbox";
import { JSONBox } from "./json_box";
import { startOf, type Start } from "./json_start";
import { layOut, revOf, withRev } from "./jsontext";
import { LargeDocument } from "./large_document";
import { asProblem, useLoad } from "./load";
import { Name, Refusal, Title } from "./parts";
import { short } from "./documents";
import { draftOf, dropDraft, keepDraft, type Draft } from "./draft";
import { goWith, link } from "./route";
import { OtherAccount } from "./same_account";
import type { User } from "./session";

interface Saved {
  id: string;
  rev: string;
}

interface Loaded extends DocumentParts {
  shown: Start; // of the text
}

/** load returns the text of a document, all of it or what is shown without a question; of a new one, a text to begin with. */
async function load(db: string, id: string | undefined, all: boolean, signal: AbortSignal): Promise<Loaded> {
  if (id !== undefined) {
    const parts = await documentParts(await text(documentPath(db, id) + query({ conflicts: true }), { signal }), signal);
    return { ...parts, shown: all ? { text: await layOut(parts.text, signal), whole: true } : startOf(parts.text) };
  }
  const { uuids } = await json<{ uuids: string[] }>("_uuids", { signal });
  const first = `{\n  "_id": ${JSON.stringify(uuids[0])}\n}`;
  return { text: first, rev: "", conflicts: 0, attachments: 0, shown: { text: first, whole: true } };
}

/** Document shows a document, or makes a new one when there is no id. */
export function Document({ db, id, user }: { db: string; id?: string; user: User }) {
  const of = { owner: user.name ?? "", db, id };
  const [all, setAll] = useState(() => draftOf(of) !== undefined); // a long text is edited
  const stored = useLoad((signal) => load(db, id, all, signal), [db, id, all, user.name]);
  const shown = stored.value?.shown;
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
      {shown?.whole && <Editing key={shown.text} of={of} stored={shown.text} />}
      {shown && !shown.whole && id !== undefined && (
        <LargeDocument
          of={of}
          id={id}
          rev={stored.value!.rev}
          length={stored.value!.text.length}
          start={shown.text}
          edit={() => setAll(true)}
          reload={stored.again}
        />
      )}
    </main>
  );
}

function acceptedAs(rev: string): string {
  return `Accepted as revision ${short(rev)}: fewer copies than asked have it yet.`;
}

function Editing({ of, stored }: { of: Draft; stored: string }) {
  const { db, id } = of;
  const draft = useRef(draftOf(of));
  const first = draft.current ?? stored;
  const editor = useRef<EditorHandle | undefined>(undefined);
  const base = useRef(stored); // the text that the server has
  const saving = useRef(false);
  const [changed, setChanged] = useState(first !== stored);
  const [note, setNote] = useState("");
  const [told, setTold] = useState(() => { // what one should not miss
    if (draft.current !== undefined && draft.current !== stored) return "This is the draft from before, which was not saved.";
    const { accepted } = (history.state ?? {}) as { accepted?: string }; // of a new document
    return accepted !== undefined && accepted === revOf(stored) ? acceptedAs(accepted) : "";
  });
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const [kept, setKept] = useState(true); // the draft is
  const here = useRef(true);
  useEffect(() => () => {
    here.current = false;
  }, []);
  const [theirs, setTheirs] = useState<{ text: string; deleting: boolean }>(); // what somebody else has saved meanwhile
  const [deleting, setDeleting] = useState(false);

  useLayoutEffect(() => {
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

  /** save sends a text. anyway: as whoever is logged in now. */
  const save = async (body: string, anyway = false) => {
    if (saving.current) return;
    saving.current = true;
    setBusy(true);
    setProblem(undefined);
    setNote("");
    setTold("");
    try {
      const { value: saved, accepted } = id === undefined
        ? await write<Saved>(path(db), { method: "POST", body, writes: true, anyone: anyway })
        : await write<Saved>(documentPath(db, id), { method: "PUT", body, anyone: anyway });
      if (id === undefined) {
        base.current = editor.current?.text() ?? body;
        dropDraft(of);
        if (here.current) goWith(link(["doc", db, saved.id]), accepted ? { accepted: saved.rev } : null);
        return;
      }
      // What was typed while it was saved stays, as a change of what is stored now.
      const now = editor.current?.text() ?? body;
      base.current = withRev(body, saved.rev);
      setTheirs(undefined);
      if (accepted) setTold(acceptedAs(saved.rev));
      else setNote(`Saved as revision ${short(saved.rev)}.`);
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
    const mine = await layOut(body);
    await newest((stored) => {
      if (withRev(stored, "") !== withRev(mine, "")) setTheirs({ text: stored, deleting: false });
      else replace(stored); // it was saved before, and the answer was lost
    });
  };

  /** newest gives show the text that the server has now. */
  const newest = async (show: (stored: string) => void) => {
    try {
      show(await layOut(await text(documentPath(db, id!))));
    } catch (e) {
      const why = asProblem(e);
      setProblem(why.status === 404 ? new Problem(409, "conflict", "Somebody has deleted this document meanwhile.") : why);
    }
  };

  /** notDeleted shows what somebody else has saved before the document was deleted. */
  const notDeleted = async () => {
    setDeleting(false);
    setTold("");
    await newest((stored) => {
      if (changed) {
        setTheirs({ text: stored, deleting: true });
        return;
      }
      replace(stored);
      setTold(`Nothing was deleted: somebody has changed the document meanwhile. This is what they saved, revision ${short(revOf(stored))}.`);
    });
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
      {told && <p class="note" role="status">{told}</p>}
      {changed && !kept && <p class="note">This text is too large to be kept over a reload of the page. Save it before you leave.</p>}
      {problem instanceof OtherAccount && <OtherNote of={problem} busy={busy} again={saveNow} anyway={() => void save(editor.current?.text() ?? first, true)} />}
      {problem && !(problem instanceof OtherAccount) && <Refusal of={problem} again={problem.status === 0 ? saveNow : undefined} />}
      {theirs && (
        <TheirsNote
          text={theirs.text}
          deleting={theirs.deleting}
          busy={busy}
          take={() => replace(theirs.text)}
          save={() => void save(withRev(editor.current?.text() ?? first, revOf(theirs.text)))}
        />
      )}
      <div class={theirs === undefined ? "editors" : "editors two"}>
        <EditorBox label="Document" text={first} handle={editor} onChange={edited} onSave={saveNow} />
        {theirs && <JSONBox label="What somebody else has saved" json={theirs.text} />}
      </div>
      {deleting && id !== undefined && (
        <DeleteDocument of={of} id={id} rev={revOf(base.current)} close={() => setDeleting(false)} changed={() => void notDeleted()} />
      )}
    </>
  );
}
