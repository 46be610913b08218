// Queries by selector, what the server makes of them, and their indexes.
import { useEffect, useRef, useState } from "preact/hooks";
import { path, text } from "./api";
import { draftOf, dropDraft, keepDraft, type Draft } from "./draft";
import { EditorBox, type EditorHandle } from "./editorbox";
import { string } from "./designdoc";
import { get } from "./jsonparts";
import { useLoad } from "./load";
import { Indexes, NewIndex } from "./mangoindexes";
import { explainedOf } from "./mangoexplain";
import { type Found, cell, columnsOf, firstQuery, foundOf, limitOf, proposalOf, requestOf } from "./mangoquery";
import { DatabaseNavigation } from "./navigation";
import { Name, Refusal, Title, count, visible } from "./parts";
import { capped } from "./rowpages";
import { go, link, type Place } from "./route";
import type { User } from "./session";

export function View({ place, user }: { place: Place; user: User }) {
  const db = place.segments[1]!;
  const asked = place.params.get("q") ?? undefined;
  const bookmark = place.params.get("bookmark") ?? undefined;
  const explain = place.params.get("explain") === "true";
  const draft: Draft = { owner: user.name ?? "", db, id: `_mango/${asked ?? ""}` }; // of what the address says
  const first = useRef(draftOf(draft) ?? asked ?? firstQuery).current;
  const editor = useRef<EditorHandle | undefined>(undefined);
  const [turn, setTurn] = useState(0); // one more for each time that the same is asked
  const [making, setMaking] = useState<string[]>(); // fields of a new index
  const [made, setMade] = useState(0);
  const shown = useRef(asked);
  useEffect(() => {
    if (asked === shown.current) return; // a draft stays
    shown.current = asked;
    if (asked !== undefined && editor.current && editor.current.text() !== asked) editor.current.replace(asked); // one went back
  }, [asked]);
  const ask = (explain: boolean) => {
    const q = editor.current?.text() ?? first;
    dropDraft(draft); // the address has it
    const to = link(["mango", db], { q, explain: explain ? "true" : undefined });
    if (to === location.hash) setTurn((n) => n + 1);
    else go(to);
  };
  return (
    <main class="full">
      <DatabaseNavigation db={db} kind="mango" user={user} />
      <header class="bar">
        <Title text={`Query of ${db}`}>Query</Title>
        <span class="quiet">of <a href={link(["db", db])}><Name of={db} /></a></span>
      </header>
      <div class="split">
        <section class="definition" aria-label="Query">
          <EditorBox
            label="Query"
            text={first}
            handle={editor}
            onChange={(now) => (now === (asked ?? firstQuery) ? dropDraft(draft) : keepDraft(draft, now))}
            onSave={() => ask(false)}
          />
          <div class="buttons">
            <button type="button" onClick={() => ask(true)}>Explain</button>
            <button type="button" class="main" onClick={() => ask(false)}>Run</button>
          </div>
        </section>
        {asked === undefined && <section class="rows" aria-label="Result"><p class="quiet">Run shows the documents that match, Explain how the server finds them. Ctrl-S runs too.</p></section>}
        {asked !== undefined && explain && <Explanation key={`${made} ${turn}`} db={db} query={asked} make={setMaking} />}
        {asked !== undefined && !explain && <Result key={`${made} ${turn}`} db={db} query={asked} bookmark={bookmark} make={setMaking} />}
        <Indexes db={db} turn={made} make={() => setMaking([])} />
      </div>
      {making && <NewIndex db={db} fields={making} close={() => setMaking(undefined)} made={() => setMade((n) => n + 1)} />}
    </main>
  );
}

function Result({ db, query, bookmark, make }: { db: string; query: string; bookmark?: string; make: (fields: string[]) => void }) {
  const page = useLoad(async (signal) => {
    const body = requestOf(query, bookmark);
    return foundOf(await text(path(db, "_find"), { method: "POST", body, signal }), limitOf(query));
  }, [db, query, bookmark]);
  const found = page.problem ? undefined : page.value;
  const missing = page.problem?.error === "no_usable_index" || found?.warnings.some((w) => w.startsWith("No matching index"));
  return (
    <section class="rows" aria-label="Result">
      {page.problem && <Refusal of={page.problem} again={page.again} />}
      {page.loading && <p class="quiet" role="status">Searching …</p>}
      {found?.warnings.map((w) => <p key={w} class="note">{visible(w)}</p>)}
      {missing && <Proposal query={query} make={make} />}
      {found?.stats && (
        <p class="quiet">
          {count(found.stats.results_returned)} {found.stats.results_returned === 1 ? "result" : "results"}; {count(found.stats.total_keys_examined)} keys
          and {count(found.stats.total_docs_examined)} documents were read, in {found.stats.execution_time_ms.toFixed(1)} ms
        </p>
      )}
      {found && found.docs.length > 0 && <Documents db={db} query={query} docs={found.docs} busy={page.loading} />}
      {found?.docs.length === 0 && !page.loading && <p class="quiet">{bookmark === undefined ? "No document matches." : "No more documents match."}</p>}
      <nav class="pages" aria-label="Pages">
        {bookmark !== undefined && <a href={link(["mango", db], { q: query })}>First page</a>}
        {found?.bookmark !== undefined && <a href={link(["mango", db], { q: query, bookmark: found.bookmark })}>Next page</a>}
      </nav>
    </section>
  );
}

function Documents({ db, query, docs, busy }: { db: string; query: string; docs: Found["docs"]; busy: boolean }) {
  const columns = columnsOf(query, docs);
  const named = docs.some((d) => get(d, "_id") !== undefined);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Documents that match">
      <table class="json" aria-busy={busy}>
        <thead>
          <tr>
            {named && <th scope="col">Id</th>}
            {columns.map((c) => <th key={c} scope="col"><Name of={c} /></th>)}
          </tr>
        </thead>
        <tbody>
          {docs.map((d, i) => {
            const id = string(get(d, "_id"));
            return (
              <tr key={i}>
                {named && <th scope="row">{id !== "" && <a href={link(["doc", db, id])}><Name of={id} /></a>}</th>}
                {columns.map((c) => <td key={c}><code>{visible(capped(cell(d, c)))}</code></td>)}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** Proposal offers an index that would fit a query. */
function Proposal({ query, make }: { query: string; make: (fields: string[]) => void }) {
  const fields = proposalOf(query);
  if (fields.length === 0) return null;
  return (
    <div class="note">
      <p>An index of <b>{fields.map(visible).join(", ")}</b> would fit.</p>
      <div class="buttons"><button type="button" onClick={() => make(fields)}>Create this index …</button></div>
    </div>
  );
}

function Explanation({ db, query, make }: { db: string; query: string; make: (fields: string[]) => void }) {
  const answer = useLoad(async (signal) => explainedOf(await text(path(db, "_explain"), { method: "POST", body: query, signal })), [db, query]);
  const e = answer.problem ? undefined : answer.value;
  return (
    <section class="rows" aria-label="Explanation">
      {answer.problem && <Refusal of={answer.problem} again={answer.again} />}
      {answer.loading && <p class="quiet" role="status">Asking …</p>}
      {e && (
        <>
          <h2>Index: {visible(e.index)}</h2>
          <ul class="told">{e.lines.map((l) => <li key={l}>{visible(capped(l))}</li>)}</ul>
          {(e.scan || e.index.startsWith("No index")) && <Proposal query={query} make={make} />}
          {e.others.length > 0 && (
            <>
              <h3>Not used</h3>
              <ul class="told">{e.others.map((o) => <li key={o.name}><b>{visible(o.name)}</b>: {visible(o.why)}</li>)}</ul>
            </>
          )}
        </>
      )}
    </section>
  );
}
