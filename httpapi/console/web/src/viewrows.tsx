// The rows of a view, page by page, and how far its index is while one waits for it.
import { useEffect, useState } from "preact/hooks";
import { documentPath, query, text } from "./api";
import { useLoad } from "./load";
import { Name, Refusal, count, visible } from "./parts";
import { building } from "./building";
import { type Asked, type Row, askedOf, capped, nextOf, pageSize, paramsOf, requestOf, rowsOf } from "./rowpages";
import { go, link, type Place } from "./route";
import type { User } from "./session";

interface Props {
  place: Place;
  user: User;
  db: string;
  ddoc: string;
  view: string;
  reduces: boolean;
  partitioned: boolean;
  turn: number; // another one: the rows are asked for again
}

export function Rows({ place, user, db, ddoc, view, reduces, partitioned, turn }: Props) {
  const asked = askedOf(place.params);
  const wanting = partitioned && asked.partition === undefined;
  const page = useLoad(async (signal) => {
    if (wanting) return undefined;
    const of = `${documentPath(db, "_design/" + ddoc)}/_view/${encodeURIComponent(view)}`;
    const answer = await text(of + query(requestOf(asked, reduces)), { signal });
    return { rows: rowsOf(answer), total: /"total_rows":(\d+)/.exec(answer.slice(0, 100))?.[1] };
  }, [JSON.stringify(asked), reduces, turn, wanting]);
  const value = page.problem ? undefined : page.value; // what was there before is not what was asked for
  const rows = value?.rows.slice(0, pageSize) ?? [];
  const next = value && nextOf(asked, value.rows);
  const at = (a: Asked) => link(["view", db, ddoc, view], paramsOf(a));
  const first = { ...asked, from: undefined, fromID: undefined, skip: 0 };
  const isFirst = asked.from === undefined && asked.skip === 0;
  return (
    <section aria-label="Rows" class="rows">
      <Selection key={JSON.stringify(asked)} asked={first} at={at} reduces={reduces} partitioned={partitioned} />
      {page.problem && <Refusal of={page.problem} again={page.again} />}
      {page.loading && <Waiting db={db} ddoc={ddoc} user={user} />}
      {wanting && <p class="quiet">This view is of one partition at a time: name it above.</p>}
      {rows.length > 0 && <RowTable db={db} rows={rows} busy={page.loading} />}
      {value && rows.length === 0 && !page.loading && <p class="quiet">{isFirst ? "No rows." : "No rows from here on."}</p>}
      <nav class="pages" aria-label="Pages">
        {!isFirst && <a href={at(first)}>First page</a>}
        {next && <a href={at(next)}>Next page</a>}
        {value?.total && <span class="quiet">{count(Number(value.total))} {value.total === "1" ? "row" : "rows"} in the view</span>}
      </nav>
    </section>
  );
}

/** RowTable shows rows; ids lead to their documents. */
export function RowTable({ db, rows, busy, label = "Rows of the view" }: { db: string; rows: Row[]; busy?: boolean; label?: string }) {
  const reduced = rows[0]?.id === undefined;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table aria-busy={busy} class="json">
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col">Value</th>
            {!reduced && <th scope="col">Document</th>}
          </tr>
        </thead>
        <tbody>
          {rows.map((r, i) => (
            <tr key={i}>
              <th scope="row"><code>{visible(capped(r.key))}</code></th>
              <td><code>{visible(capped(r.value))}</code></td>
              {r.id !== undefined && <td><a href={link(["doc", db, r.id])}><Name of={r.id} /></a></td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Selection({ asked, at, reduces, partitioned }: { asked: Asked; at: (a: Asked) => string; reduces: boolean; partitioned: boolean }) {
  const submit = (e: Event) => {
    e.preventDefault();
    const fields = new FormData((e.currentTarget as HTMLElement).closest("form")!);
    const given = (name: string) => String(fields.get(name) ?? "").trim() || undefined;
    go(at({
      ...asked,
      key: given("key"), startkey: given("startkey"), endkey: given("endkey"), partition: given("partition"),
      descending: fields.has("descending"), group: given("group") ?? "",
    }));
  };
  const key = (name: "key" | "startkey" | "endkey", label: string) => (
    <label>{label} <input name={name} defaultValue={asked[name]} placeholder="JSON" spellcheck={false} autocapitalize="none" /></label>
  );
  return (
    <form class="selection" role="search" aria-label="Which rows" onSubmit={submit}>
      {partitioned && <label>Partition <input name="partition" required defaultValue={asked.partition} spellcheck={false} /></label>}
      {key("key", "Key")}
      {key("startkey", "From key")}
      {key("endkey", "To key")}
      {reduces && (
        <label>
          Reduce
          <select name="group" value={asked.group} onChange={submit}>
            <option value="">no: all rows</option>
            <option value="0">all to one value</option>
            <option value="exact">by key</option>
            {[1, 2, 3, 4, 5, 6].map((n) => <option key={n} value={String(n)}>by key, level {n}</option>)}
          </select>
        </label>
      )}
      <label class="check"><input type="checkbox" name="descending" defaultChecked={asked.descending} onChange={submit} /> Descending</label>
      <button>Show rows</button>
    </form>
  );
}

/** patience is how long nothing is said of a query that waits, and lookAgain the time between two looks, in milliseconds. */
const patience = 1000, lookAgain = 2000;

/** Waiting tells how far the index is that a query waits for. */
function Waiting({ db, ddoc, user }: { db: string; ddoc: string; user: User }) {
  const [told, tell] = useState<string>();
  useEffect(() => {
    const call = new AbortController();
    const look = async () => {
      if (document.visibilityState !== "visible") return;
      const now = await building(db, ddoc, user, call.signal).catch(() => undefined); // the query itself tells what is wrong
      if (!call.signal.aborted) tell(now ?? "Waiting for the index …");
    };
    let again: number | undefined;
    const soon = setTimeout(() => {
      void look();
      again = setInterval(() => void look(), lookAgain);
    }, patience);
    return () => {
      call.abort();
      clearTimeout(soon);
      clearInterval(again);
    };
  }, [db, ddoc]);
  return <p class="quiet" role="status">{told ?? "Loading …"}</p>;
}
