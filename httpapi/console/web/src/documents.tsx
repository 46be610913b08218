// The documents of a database, page by page: a list, or a table of their fields.
import { useState } from "preact/hooks";
import { json, path, query } from "./api";
import { DeleteDatabase } from "./delete_database";
import { DeleteDocuments } from "./delete_documents";
import { lazy } from "./lazy";
import { useLoad } from "./load";
import { DatabaseNavigation } from "./navigation";
import { Name, Refusal, Title, count } from "./parts";
import { go, link, type Place } from "./route";
import { SelectAll, SelectOne, mostSelected, useSelection, type Selection } from "./selection";
import type { User } from "./session";

const DocumentTable = lazy(() => import("./document_table").then((m) => m.View));

const pageSize = 50;

export interface Row {
  id: string;
  value: { rev: string };
}

interface Listing {
  total_rows?: number | null; // none for a partition
  rows: Row[];
}

export function Documents({ db, place, user }: { db: string; place: Place; user: User }) {
  const from = place.params.get("from") ?? "";
  const partition = place.params.get("partition") ?? "";
  const asTable = place.params.get("as") === "table";
  const page = useLoad(
    (signal) => {
      const startkey = from === "" ? undefined : JSON.stringify(from);
      const list = partition === "" ? path(db, "_all_docs") : path(db, "_partition", partition, "_all_docs");
      return json<Listing>(list + query({ limit: pageSize + 1, startkey }), { signal });
    },
    [db, from, partition, user.name],
  );
  const info = useLoad((signal) => json<{ props: { partitioned?: boolean } }>(path(db), { signal }), [db, user.name]);
  const selection = useSelection();
  const [deleting, setDeleting] = useState<"database" | "documents">();
  const listing = page.problem ? undefined : page.value; // what is kept may be of another page
  const rows = listing?.rows.slice(0, pageSize) ?? [];
  const next = listing?.rows[pageSize]?.id;
  /** to is this view with other parameters. */
  const to = (params: Record<string, string | undefined>) => link(["db", db], { ...Object.fromEntries(place.params), ...params });
  const jump = (e: SubmitEvent) => {
    e.preventDefault();
    const fields = new FormData(e.currentTarget as HTMLFormElement);
    const given = (name: string) => String(fields.get(name) ?? "") || undefined;
    const other = (given("partition") ?? "") !== partition;
    go(to({ partition: given("partition"), from: other && given("id") === from ? undefined : given("id") }));
  };
  return (
    <main class={asTable ? "wide" : undefined}>
      <DatabaseNavigation db={db} kind="db" user={user} />
      <header class="bar">
        <Title text={db} />
        <form onSubmit={jump} role="search" class="fields">
          {(info.value?.props.partitioned || partition !== "") && (
            <input key={`partition ${partition}`} name="partition" type="search" aria-label="Partition" placeholder="partition" defaultValue={partition} spellcheck={false} />
          )}
          <input key={from} name="id" type="search" aria-label="Documents from this id on" placeholder="from id …" defaultValue={from} spellcheck={false} />
          <button class="unseen">Show</button>
        </form>
        <a class="button main" href={link(["new", db])}>New document</a>
        {user.roles.includes("_admin") && <button type="button" class="danger" onClick={() => setDeleting("database")}>Delete database</button>}
      </header>
      {page.problem && <Refusal of={page.problem} again={page.again} />}
      {info.problem && !page.problem && <Refusal of={info.problem} again={info.again} />}
      <div class="bar">
        <span class="quiet grow">
          {listing?.total_rows != null && <>{count(listing.total_rows)} {listing.total_rows === 1 ? "document" : "documents"}</>}
        </span>
        <SelectionBar selection={selection} remove={() => setDeleting("documents")} />
        <nav class="switch" aria-label="Shown as">
          <a href={to({ as: undefined })} aria-current={asTable ? undefined : "true"}>List</a>
          <a href={to({ as: "table" })} aria-current={asTable ? "true" : undefined}>Table</a>
        </nav>
      </div>
      {rows.length > 0 && asTable && <DocumentTable db={db} place={place} rows={rows} busy={page.loading} selection={selection} />}
      {rows.length > 0 && !asTable && <List db={db} rows={rows} busy={page.loading} selection={selection} />}
      {listing && rows.length === 0 && !page.loading && <p class="quiet">{nothing(from, partition)}</p>}
      {!page.value && page.loading && <p class="quiet" role="status">Loading …</p>}
      <nav class="pages" aria-label="Pages">
        {from !== "" && <a href={to({ from: undefined })}>First page</a>}
        {next !== undefined && <a href={to({ from: next })}>Next page</a>}
      </nav>
      {deleting === "database" && <DeleteDatabase db={db} close={() => setDeleting(undefined)} />}
      {deleting === "documents" && (
        <DeleteDocuments
          db={db}
          revs={selection.revs}
          close={(done) => {
            setDeleting(undefined);
            if (!done) return;
            selection.clear();
            page.again();
          }}
        />
      )}
    </main>
  );
}

function nothing(from: string, partition: string): string {
  const where = partition === "" ? "" : " in this partition";
  return from === "" ? `No documents${where} yet.` : `No documents${where} from here on.`;
}

function SelectionBar({ selection, remove }: { selection: Selection; remove: () => void }) {
  const n = selection.revs.size;
  return (
    <>
      <span role="status">{n > 0 && `${count(n)} selected${n >= mostSelected ? ", no more at once" : ""}`}</span>
      {n > 0 && <button type="button" onClick={selection.clear}>Select none</button>}
      {n > 0 && <button type="button" class="danger" onClick={remove}>Delete selected</button>}
    </>
  );
}

function List({ db, rows, busy, selection }: { db: string; rows: Row[]; busy: boolean; selection: Selection }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="List of documents">
      <table aria-busy={busy}>
        <thead>
          <tr>
            <td class="select"><SelectAll rows={rows} selection={selection} /></td>
            <th scope="col">Id</th>
            <th scope="col">Revision</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((r) => (
            <tr key={r.id}>
              <td class="select"><SelectOne row={r} selection={selection} /></td>
              <th scope="row">
                <a href={link(["doc", db, r.id])}><Name of={r.id} /></a>
              </th>
              <td><code title={r.value.rev}>{short(r.value.rev)}</code></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** short is a revision as people compare it. */
export function short(rev: string): string {
  return rev.replace(/^(\d+-.{8}).*$/, "$1…");
}
