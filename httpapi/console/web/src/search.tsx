// A search index: what matches a query, counted by values, page by page.
import { documentPath, text } from "./api";
import { useLoad } from "./load";
import { DatabaseNavigation } from "./navigation";
import { Name, Refusal, Title, count, visible } from "./parts";
import { capped } from "./rowpages";
import { go, link, type Place } from "./route";
import { type Asked, type Found, type Hit, askedOf, foundOf, requestOf, searchOf } from "./searchquery";
import type { User } from "./session";

export function View({ place, user }: { place: Place; user: User }) {
  const [, db, ddoc, index] = place.segments as [string, string, string, string];
  const engine = place.params.get("engine") === "nouveau" ? "nouveau" : undefined;
  const asked = askedOf(place.params);
  const at = (a: Asked) => `${link(["search", db, ddoc, index])}?${searchOf(engine, a)}`;
  const page = useLoad(async (signal) => {
    if (asked.q === "") return undefined;
    const to = `${documentPath(db, "_design/" + ddoc)}/${engine ? "_nouveau" : "_search"}/${encodeURIComponent(index)}`;
    return foundOf(await text(to, { method: "POST", body: requestOf(asked, engine !== undefined), signal }), asked);
  }, [JSON.stringify(asked), user.name]);
  const found = page.value;
  const first = { ...asked, bookmark: undefined };
  return (
    <main>
      <DatabaseNavigation db={db} kind="designs" user={user} />
      <header class="bar">
        <Title text={index} />
        <span class="quiet">
          {engine ?? "search"} index of <a href={link(["db", db])}><Name of={db} /></a> in <a href={link(["doc", db, "_design/" + ddoc])}><Name of={ddoc} /></a>
        </span>
      </header>
      <Form key={searchOf(engine, first)} asked={first} nouveau={engine !== undefined} at={at} />
      {page.problem && <Refusal of={page.problem} again={page.again} />}
      {page.loading && asked.q !== "" && <p class="quiet" role="status">Searching …</p>}
      {asked.q === "" && <p class="quiet">Words to search for, as <code>frog</code>, <code>name:frog</code>, <code>"two words"</code>, <code>fro*</code>, <code>age:[3 TO 5]</code>; <code>*:*</code> finds all.</p>}
      {asked.q !== "" && found && !page.problem && (
        <>
          <p class="quiet">{count(found.total)} {found.total === 1 ? "document matches" : "documents match"}</p>
          <Counts of={found} asked={first} at={at} nouveau={engine !== undefined} />
          {found.hits.length > 0 && <Hits db={db} hits={found.hits} busy={page.loading} />}
          {found.hits.length === 0 && <p class="quiet">{asked.bookmark === undefined ? "" : "No more."}</p>}
          <nav class="pages" aria-label="Pages">
            {asked.bookmark !== undefined && <a href={at(first)}>First page</a>}
            {found.bookmark !== undefined && <a href={at({ ...asked, bookmark: found.bookmark })}>Next page</a>}
          </nav>
        </>
      )}
    </main>
  );
}

function Form({ asked, nouveau, at }: { asked: Asked; nouveau: boolean; at: (a: Asked) => string }) {
  const submit = (e: SubmitEvent) => {
    e.preventDefault();
    const fields = new FormData(e.currentTarget as HTMLFormElement);
    const given = (name: string) => String(fields.get(name) ?? "").trim();
    go(at({
      ...asked, q: given("q"), sort: given("sort"), counts: given("counts"), ranges: given("ranges"), highlight: given("highlight"), limit: Number(given("limit")) || 25,
    }));
  };
  const box = (name: "sort" | "counts" | "ranges" | "highlight", label: string, placeholder: string) => (
    <label>{label} <input name={name} defaultValue={asked[name]} placeholder={placeholder} spellcheck={false} autocapitalize="none" /></label>
  );
  return (
    <form class="selection" role="search" onSubmit={submit}>
      <label class="wide">Query <input name="q" defaultValue={asked.q} spellcheck={false} autocapitalize="none" /></label>
      {box("sort", "Sort by", nouveau ? "-price, name" : "-price<number>, name<string>")}
      {box("counts", "Count by", "fields")}
      {box("ranges", "Ranges", nouveau ? '{"age": [{"label": "old", "min": 7}]}' : '{"age": {"old": "[7 TO 99]"}}')}
      {!nouveau && box("highlight", "Highlight", "fields")}
      <label class="few">Results on a page <input name="limit" type="number" min="1" max="200" defaultValue={String(asked.limit)} /></label>
      <button class="main">Search</button>
    </form>
  );
}

/** mostValues is how many values of a field are shown. */
const mostValues = 20;

function Counts({ of, asked, at, nouveau }: { of: Found; asked: Asked; at: (a: Asked) => string; nouveau: boolean }) {
  const only = (field: string, value: string) => at({ ...asked, drilldown: [...asked.drilldown.filter((d) => d[0] !== field), [field, value]] });
  return (
    <>
      {asked.drilldown.length > 0 && (
        <p>
          Only{" "}
          {asked.drilldown.map(([field, value], i) => (
            <a key={field} class="button small" href={at({ ...asked, drilldown: asked.drilldown.filter((_, j) => i !== j) })}>
              {visible(field)} = {visible(value)} <span aria-hidden="true">×</span><span class="unseen">, take away</span>
            </a>
          ))}
        </p>
      )}
      {of.counts.length + of.ranges.length > 0 && (
        <section class="counts" aria-label="Counts">
          {[...of.counts, ...of.ranges].map((c, i) => (
            <div key={i}>
              <h2><Name of={c.field} /></h2>
              <ul>
                {c.values.slice(0, mostValues).map((v) => (
                  <li key={v.value}>
                    {nouveau || i >= of.counts.length ? <Name of={v.value} /> : <a href={only(c.field, v.value)}><Name of={v.value} /></a>} <span class="quiet">{count(v.n)}</span>
                  </li>
                ))}
              </ul>
              {c.values.length > mostValues && <p class="quiet">and {count(c.values.length - mostValues)} more values</p>}
              {c.values.length === 0 && <p class="quiet">none</p>}
            </div>
          ))}
        </section>
      )}
    </>
  );
}

function Hits({ db, hits, busy }: { db: string; hits: Hit[]; busy: boolean }) {
  return (
    <ol class="hits" aria-busy={busy}>
      {hits.map((h) => (
        <li key={h.id}>
          <a href={link(["doc", db, h.id])}><Name of={h.id} /></a>
          {h.score !== undefined && <span class="quiet"> score {Number(h.score).toFixed(3)}</span>}
          {h.highlights.flatMap(({ field, fragments }) => fragments.map((pieces, i) => (
            <p key={`${field} ${i}`}>
              <span class="quiet"><Name of={field} />: </span>
              {pieces.map((p, j) => (p.marked ? <mark key={j}>{visible(p.text)}</mark> : <span key={j}>{visible(p.text)}</span>))}
            </p>
          )))}
          {h.fields.length > 0 && (
            <p>{h.fields.map((f) => <span key={f.name} class="field"><span class="quiet"><Name of={f.name} /></span> <code>{visible(capped(f.value))}</code></span>)}</p>
          )}
        </li>
      ))}
    </ol>
  );
}
