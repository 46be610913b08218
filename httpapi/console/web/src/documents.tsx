// The documents of a database, page by page.
import { useState } from "preact/hooks";
import { json, path, query } from "./api";
import { asProblem, useLoad } from "./load";
import { DatabaseNavigation } from "./navigation";
import { Dialog, Name, Refusal, Title, count, visible } from "./parts";
import { go, link, type Place } from "./route";
import type { Problem } from "./api";
import type { User } from "./session";

const pageSize = 50;

interface Listing {
  total_rows?: number; // none for a partition
  rows: { id: string; value: { rev: string } }[];
}

export function Documents({ db, place, user }: { db: string; place: Place; user: User }) {
  const from = place.params.get("from") ?? "";
  const page = useLoad(
    (signal) => {
      const startkey = from === "" ? undefined : JSON.stringify(from);
      return json<Listing>(path(db, "_all_docs") + query({ limit: pageSize + 1, startkey }), { signal });
    },
    [db, from, user.name],
  );
  const [deleting, setDeleting] = useState(false);
  const rows = page.value?.rows.slice(0, pageSize) ?? [];
  const next = page.value?.rows[pageSize]?.id;
  const jump = (e: SubmitEvent) => {
    e.preventDefault();
    const id = String(new FormData(e.currentTarget as HTMLFormElement).get("id"));
    go(link(["db", db], { from: id || undefined }));
  };
  return (
    <main>
      <DatabaseNavigation db={db} kind="db" user={user} />
      <header class="bar">
        <Title text={db} />
        <form onSubmit={jump} role="search">
          <input key={from} name="id" type="search" aria-label="Documents from this id on" placeholder="from id …" defaultValue={from} spellcheck={false} />
        </form>
        <a class="button main" href={link(["new", db])}>New document</a>
        {user.roles.includes("_admin") && <button type="button" class="danger" onClick={() => setDeleting(true)}>Delete database</button>}
      </header>
      {page.problem && <Refusal of={page.problem} again={page.again} />}
      {page.value?.total_rows !== undefined && (
        <p class="quiet">{count(page.value.total_rows)} {page.value.total_rows === 1 ? "document" : "documents"}</p>
      )}
      {rows.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="List of documents">
        <table aria-busy={page.loading}>
          <thead>
            <tr>
              <th scope="col">Id</th>
              <th scope="col">Revision</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((r) => (
              <tr key={r.id}>
                <th scope="row">
                  <a href={link(["doc", db, r.id])}><Name of={r.id} /></a>
                </th>
                <td><code title={r.value.rev}>{short(r.value.rev)}</code></td>
              </tr>
            ))}
          </tbody>
        </table>
        </div>
      )}
      {page.value && rows.length === 0 && !page.loading && <p class="quiet">{from ? "No documents from here on." : "No documents yet."}</p>}
      {!page.value && page.loading && <p class="quiet" role="status">Loading …</p>}
      <nav class="pages" aria-label="Pages">
        {from !== "" && <a href={link(["db", db])}>First page</a>}
        {next !== undefined && <a href={link(["db", db], { from: next })}>Next page</a>}
      </nav>
      {deleting && <DeleteDatabase db={db} close={() => setDeleting(false)} />}
    </main>
  );
}

/** short is a revision as people compare it. */
export function short(rev: string): string {
  return rev.replace(/^(\d+-.{8}).*$/, "$1…");
}

function DeleteDatabase({ db, close }: { db: string; close: () => void }) {
  const [problem, setProblem] = useState<Problem>();
  const [typed, setTyped] = useState("");
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    try {
      await json(path(db), { method: "DELETE" });
      close();
      go(link([]));
    } catch (e) {
      setProblem(asProblem(e));
    }
  };
  return (
    <Dialog title="Delete database" close={close}>
      <form onSubmit={submit}>
        <p>
          <b>{visible(db)}</b> and all its documents are deleted, on every node. This cannot be undone.
        </p>
        <label>
          Its name, to be sure <input value={typed} onInput={(e) => setTyped(e.currentTarget.value)} spellcheck={false} autocapitalize="none" />
        </label>
        {problem && <Refusal of={problem} />}
        <div class="buttons">
          <button type="button" onClick={close}>Cancel</button>
          <button class="danger" disabled={typed !== db}>Delete</button>
        </div>
      </form>
    </Dialog>
  );
}
