// One function of a design document in an editor: of a filter, an update, a search index, or the validation.
import { useRef, useState } from "preact/hooks";
import { Problem, ask, documentPath, text } from "./api";
import { string } from "./designdoc";
import { short } from "./documents";
import { draftOf, dropDraft, keepDraft, type Draft } from "./draft";
import { EditorBox, type EditorHandle } from "./editorbox";
import { get, set } from "./jsonparts";
import { revOf, withRev } from "./jsontext";
import { asProblem, useLoad } from "./load";
import { DatabaseNavigation } from "./navigation";
import { Name, Refusal, Title } from "./parts";
import { kinds, memberOf } from "./functionkinds";
import { link, type Place } from "./route";
import type { User } from "./session";

export function View({ place, user }: { place: Place; user: User }) {
  const [, db, ddoc, kind, name = ""] = place.segments as [string, string, string, string, string?];
  const stored = useLoad(async (signal) => {
    try {
      return await text(documentPath(db, "_design/" + ddoc), { signal });
    } catch (e) {
      if (asProblem(e).status === 404) return JSON.stringify({ _id: "_design/" + ddoc, language: "javascript" });
      throw e;
    }
  }, [db, ddoc, user.name]);
  const of = kinds[kind];
  return (
    <main class="full">
      <DatabaseNavigation db={db} kind="designs" user={user} />
      <header class="bar">
        <Title text={name || (of?.one ?? kind)} />
        <span class="quiet">
          {of?.one ?? kind} of <a href={link(["db", db])}><Name of={db} /></a> in <a href={link(["doc", db, "_design/" + ddoc])}><Name of={ddoc} /></a>
        </span>
      </header>
      {stored.problem && <Refusal of={stored.problem} again={stored.again} />}
      {!stored.value && stored.loading && <p class="quiet" role="status">Loading …</p>}
      {!of && <p class="quiet">Design documents have no functions of this kind.</p>}
      {of && stored.value !== undefined && (
        <Editing of={{ owner: user.name ?? "", db, id: `_function/${ddoc}/${kind}/${name}` }} ddoc={ddoc} design={stored.value} member={memberOf(kind, name)} blank={of.blank} note={of.note} />
      )}
    </main>
  );
}

/** Written is a draft: what is written, and what the design document had when it was begun. */
interface Written {
  text: string;
  from?: string;
}

/** writtenOf reads a draft; one that cannot be read is none. */
function writtenOf(draft: string | undefined): Written | undefined {
  try {
    const of = JSON.parse(draft ?? "null") as Written | null;
    return typeof of?.text === "string" ? of : undefined;
  } catch {
    return undefined;
  }
}

interface Props {
  of: Draft;
  ddoc: string;
  design: string; // text of the design document
  member: string[]; // where the function lies in it
  blank: string; // what a new one begins with
  note: string;
}

function Editing({ of, ddoc, design, member, blank, note: about }: Props) {
  const base = useRef(design); // the design document that the server has
  const functionOf = (design: string) => {
    const there = get(design, ...member);
    return there === undefined ? undefined : string(there);
  };
  const stored = () => functionOf(base.current);
  const draft = useRef(writtenOf(draftOf(of)));
  const from = useRef(draft.current ? draft.current.from : stored()); // what was there when this was begun
  const first = useRef(draft.current?.text ?? stored() ?? blank).current;
  const editor = useRef<EditorHandle | undefined>(undefined);
  const [changed, setChanged] = useState(first !== stored());
  const [busy, setBusy] = useState(false);
  const [note, setNote] = useState("");
  const [problem, setProblem] = useState<Problem>();
  const [restored, setRestored] = useState(draft.current !== undefined);
  const [theirs, setTheirs] = useState(from.current === stored() ? undefined : design); // what somebody else has saved meanwhile
  const edited = (now: string) => {
    setChanged(now !== stored());
    if (now === (stored() ?? blank)) dropDraft(of);
    else keepDraft(of, JSON.stringify({ text: now, from: from.current }));
  };
  const save = async (into?: string) => {
    if (busy || (theirs !== undefined && into === undefined)) return; // which one wins is asked
    setBusy(true);
    setProblem(undefined);
    setNote("");
    const to = documentPath(of.db, "_design/" + ddoc);
    const source = editor.current?.text() ?? first;
    try {
      const body = set(into ?? base.current, member, JSON.stringify(source));
      const got = await ask(to, { method: "PUT", body });
      const { rev } = (await got.json()) as { rev: string };
      base.current = withRev(body, rev);
      from.current = source;
      setRestored(false);
      setTheirs(undefined);
      setNote(got.status === 202 ? `Accepted as revision ${short(rev)}, not yet by enough copies.` : `Saved as revision ${short(rev)}.`);
      edited(editor.current?.text() ?? source);
    } catch (e) {
      const p = asProblem(e);
      if (p.status !== 409) setProblem(p);
      else await text(to).then(setTheirs, (e) => gone(asProblem(e)));
    } finally {
      setBusy(false);
    }
  };
  const gone = (why: Problem) => {
    if (why.status !== 404) return setProblem(why);
    base.current = JSON.stringify({ _id: "_design/" + ddoc, language: "javascript" });
    setTheirs(undefined);
    setProblem(new Problem(409, "conflict", "Somebody has deleted this design document meanwhile. Save makes it again, with this function only."));
  };
  const take = (now: string) => {
    base.current = now;
    from.current = stored();
    setTheirs(undefined);
    editor.current?.replace(stored() ?? blank); // tells edited
  };
  return (
    <>
      <p class="quiet">{about}</p>
      {problem && <Refusal of={problem} />}
      {theirs !== undefined && (
        <div class="note" role="alert">
          <p>
            Somebody else has saved revision <code>{short(revOf(theirs))}</code> of the design document meanwhile.{" "}
            {functionOf(theirs) === from.current ? "This function is the same in it." : "This function is another one in it."}
          </p>
          <div class="buttons">
            <button type="button" onClick={() => take(theirs)}>Take theirs</button>
            <button type="button" class="main" onClick={() => void save(theirs)}>Save mine into it</button>
          </div>
        </div>
      )}
      <div class="editors">
        <EditorBox label="Function" language="javascript" text={first} handle={editor} onChange={edited} onSave={() => void save()} />
      </div>
      <div class="buttons">
        <span class="quiet" role="status">{busy ? "Saving …" : changed ? (restored ? "The draft from before, not saved" : "Not saved") : note}</span>
        <button type="button" disabled={!changed || busy || theirs !== undefined} onClick={() => take(base.current)}>Discard changes</button>
        <button type="button" class="main" disabled={!changed || busy || theirs !== undefined} onClick={() => void save()}>Save</button>
      </div>
    </>
  );
}
