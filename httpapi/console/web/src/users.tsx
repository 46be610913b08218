// Accounts, page by page, and the administrators of the server.
import { useState } from "preact/hooks";
import { json, path, query } from "./api";
import { useLoad } from "./load";
import { Name, Refusal, Title, visible } from "./parts";
import { link, type Place } from "./route";
import { Admins } from "./admins";
import { AccountDialog, accountsDB, idPrefix, type Account, type Change } from "./account";
import type { User } from "./session";

const pageSize = 50;

interface Page {
  db: string; // that accounts are in
  accounts: Account[];
  next?: string;
}

/** load returns the accounts from a name on, whose names begin with prefix. */
async function load(from: string, prefix: string, signal: AbortSignal): Promise<Page> {
  const db = await accountsDB(signal);
  const { rows } = await json<{ rows: { id: string; doc: { _rev: string; roles?: unknown } | null }[] }>(
    path(db, "_all_docs") + query({
      startkey: JSON.stringify(idPrefix + (from || prefix)), endkey: JSON.stringify(idPrefix + prefix + "\ufff0"),
      limit: pageSize + 1, include_docs: true,
    }),
    { signal },
  );
  const name = (id: string) => id.slice(idPrefix.length);
  const accounts = rows.slice(0, pageSize).map(({ id, doc }) => ({
    name: name(id), rev: doc?._rev ?? "", roles: Array.isArray(doc?.roles) ? doc.roles.map(String) : [],
  }));
  return { db, accounts, next: rows[pageSize] && name(rows[pageSize].id) };
}

export function Users({ place, user }: { place: Place; user: User }) {
  const from = place.params.get("from") ?? "";
  const prefix = place.params.get("name") ?? "";
  const page = useLoad((signal) => load(from, prefix, signal), [from, prefix, user.name]);
  const [changing, setChanging] = useState<{ change: Change; of?: Account }>();
  const accounts = page.value?.accounts ?? [];
  const button = (change: Change, of: Account, text: string, style = "") => (
    <button type="button" class={style} aria-label={`${text} of ${visible(of.name)}`} onClick={() => setChanging({ change, of })}>{text} …</button>
  );
  return (
    <main>
      <header class="bar">
        <Title text="Users">Users</Title>
        <input
          type="search"
          aria-label="Accounts whose names begin with"
          placeholder="name begins with …"
          value={prefix}
          spellcheck={false}
          onInput={(e) => {
            history.replaceState(null, "", link(["users"], { name: e.currentTarget.value || undefined }));
            dispatchEvent(new HashChangeEvent("hashchange"));
          }}
        />
        <button type="button" class="main" disabled={!page.value} onClick={() => setChanging({ change: "new" })}>New account</button>
      </header>
      {page.problem && <Refusal of={page.problem} again={page.again} />}
      {!page.value && page.loading && <p class="quiet" role="status">Loading …</p>}
      {page.value && accounts.length === 0 && <p class="quiet">{prefix || from ? "No account has such a name." : "There are no accounts but those of the server administrators."}</p>}
      {accounts.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="List of accounts">
          <table aria-busy={page.loading}>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Roles</th>
                <th scope="col"><span class="unseen">Actions</span></th>
              </tr>
            </thead>
            <tbody>
              {accounts.map((a) => (
                <tr key={a.name}>
                  <th scope="row"><a href={link(["doc", page.value!.db, idPrefix + a.name])}><Name of={a.name} /></a></th>
                  <td class="wraps">{a.roles.map((r) => <span class="chip" key={r}><Name of={r} /></span>)}</td>
                  <td class="number actions">
                    {button("password", a, "Password")}
                    {button("roles", a, "Roles")}
                    {button("delete", a, "Delete", "danger")}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <nav class="pages" aria-label="Pages">
        {from !== "" && <a href={link(["users"], { name: prefix || undefined })}>First page</a>}
        {page.value?.next !== undefined && <a href={link(["users"], { name: prefix || undefined, from: page.value.next })}>Next page</a>}
      </nav>
      <Admins user={user} />
      {changing && page.value && <AccountDialog db={page.value.db} {...changing} close={() => setChanging(undefined)} done={page.again} />}
    </main>
  );
}
