// The design documents of a database: their views, search indexes and functions.
import { useEffect, useState } from "preact/hooks";
import { path, query, text } from "./api";
import { type Design, designsOf, stateOf } from "./designdoc";
import { useLoad } from "./load";
import { DatabaseNavigation } from "./navigation";
import { NewFunction } from "./newfunction";
import { Name, Refusal, Title, bytes, count, visible } from "./parts";
import { link, type Place } from "./route";
import { short } from "./documents";
import type { User } from "./session";

const pageSize = 25;

export function View({ place, user }: { place: Place; user: User }) {
  const db = place.segments[1]!;
  const from = place.params.get("from") ?? "_design/";
  const page = useLoad(async (signal) => {
    const range = { startkey: JSON.stringify(from), endkey: JSON.stringify("_design0"), include_docs: true, limit: pageSize + 1 };
    return designsOf(await text(path(db, "_all_docs") + query(range), { signal }));
  }, [db, from, user.name]);
  const [making, setMaking] = useState(false);
  const shown = page.value?.slice(0, pageSize) ?? [];
  const next = page.value?.[pageSize]?.id;
  return (
    <main>
      <DatabaseNavigation db={db} kind="designs" user={user} />
      <header class="bar">
        <Title text={`Views of ${db}`}>Views and search indexes</Title>
        <span class="quiet">of <a href={link(["db", db])}><Name of={db} /></a></span>
        <button type="button" onClick={() => setMaking(true)}>New function</button>
        <a class="button main" href={link(["view", db])}>New view</a>
      </header>
      {page.problem && <Refusal of={page.problem} again={page.again} />}
      {!page.value && page.loading && <p class="quiet" role="status">Loading …</p>}
      {shown.map((d) => <DesignCard key={d.id} db={db} of={d} />)}
      {page.value && shown.length === 0 && <p class="quiet">No design documents yet. A view makes the first one.</p>}
      <nav class="pages" aria-label="Pages">
        {place.params.has("from") && <a href={link(["designs", db])}>First page</a>}
        {next !== undefined && <a href={link(["designs", db], { from: next })}>Next page</a>}
      </nav>
      {making && <NewFunction db={db} designs={shown.filter((d) => !d.query).map((d) => d.name)} close={() => setMaking(false)} />}
    </main>
  );
}

function DesignCard({ db, of: d }: { db: string; of: Design }) {
  const searches = [
    ...d.search.map((name) => ({ name, engine: undefined, info: "_search_info" })),
    ...d.nouveau.map((name) => ({ name, engine: "nouveau", info: "_nouveau_info" })),
  ];
  return (
    <section class="design" aria-label={`Design document ${d.name}`}>
      <header>
        <h2><Name of={d.name} /></h2>
        <span class="quiet"><code title={d.rev}>{short(d.rev)}</code></span>
        <a href={link(["doc", db, d.id])}>Edit as JSON</a>
      </header>
      <dl>
        {d.views.length > 0 && (
          <>
            <dt>{d.query ? "Mango indexes" : "Views"}</dt>
            <dd>
              <ul>
                {d.views.map((v) => (
                  <li key={v.name}>
                    <a href={d.query ? link(["mango", db]) : link(["view", db, d.name, v.name])}><Name of={v.name} /></a>
                    {v.reduce !== "" && !d.query && <span class="quiet"> reduced by {/^_\w+$/.test(v.reduce) ? v.reduce : "a function"}</span>}
                  </li>
                ))}
              </ul>
              <State db={db} id={d.id} info="_info" />
            </dd>
          </>
        )}
        {searches.length > 0 && (
          <>
            <dt>Search indexes</dt>
            <dd>
              <ul>
                {searches.map((s) => (
                  <li key={s.info + s.name}>
                    <a href={link(["search", db, d.name, s.name], { engine: s.engine })}><Name of={s.name} /></a>
                    {s.engine && <span class="quiet"> nouveau</span>}
                    {!d.query && <a class="aside" href={link(["function", db, d.name, s.engine ?? "indexes", s.name])} aria-label={`Function of ${visible(s.name)}`}>function</a>}
                    <State db={db} id={d.id} info={`${s.info}/${encodeURIComponent(s.name)}`} />
                  </li>
                ))}
              </ul>
            </dd>
          </>
        )}
        {d.functions.map((f) => (
          <>
            <dt>{f.kind[0]!.toUpperCase() + f.kind.slice(1)}</dt>
            <dd><ul>{f.names.map((n) => <li key={n}><a href={link(["function", db, d.name, f.kind, n])}><Name of={n} /></a></li>)}</ul></dd>
          </>
        ))}
        {d.validates && <><dt>Validation</dt><dd><a href={link(["function", db, d.name, "validate_doc_update"])}>of each document that is written</a></dd></>}
      </dl>
    </section>
  );
}

/** lookAgain is how long after one look at an index that is being built the next one is taken, in milliseconds. */
const lookAgain = 2000;

/** State tells of an index: its size, and how far it is. */
function State({ db, id, info }: { db: string; id: string; info: string }) {
  const state = useLoad((signal) => stateOf(db, id, info, signal), [db, id, info]);
  const running = state.value?.running ?? false;
  useEffect(() => {
    if (!running || state.loading) return;
    const timer = setInterval(() => document.visibilityState === "visible" && state.again(), lookAgain);
    return () => clearInterval(timer);
  }, [running, state.loading]);
  if (state.problem) return <span class="quiet">{state.problem.status === 404 ? "not built yet" : state.problem.reason}</span>;
  const s = state.value;
  if (!s) return <span class="quiet">…</span>;
  const told = [bytes(s.size)];
  if (s.documents !== undefined) told.push(s.documents === 1 ? "1 document" : `${count(s.documents)} documents`);
  if (s.running) told.push(`being built, ${count(s.pending ?? 0)} changes to go`);
  else if (s.pending) told.push(`${count(s.pending)} changes behind`);
  else if (s.pending === 0) told.push("up to date");
  return <span class="quiet state">{told.join(" · ")}</span>;
}
