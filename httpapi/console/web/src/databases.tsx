// The list of databases, page by page, and a new one.
import { useState } from "preact/hooks";
import { json, path, query } from "./api";
import { useDatabaseEvents } from "./database_events";
import { asProblem, useLoad } from "./load";
import { Dialog, Name, Refusal, Title, bytes, count, visible } from "./parts";
import { isRefusal } from "./poll";
import { go, link, type Place } from "./route";
import type { Problem } from "./api";
import type { User } from "./session";

const pageSize = 50;

interface Info {
  doc_count: number;
  doc_del_count: number;
  sizes: { file: number; active: number };
  props: { partitioned?: boolean };
  cluster: { q: number; n: number };
}

interface Row {
  name: string;
  info?: Info; // none: it may not be read, or is gone since
}

interface Page {
  rows: Row[];
  next?: string; // the first name of the next page
}

/** load returns the databases from a name on, or those whose names begin with it. */
async function load(from: string, prefix: string, signal: AbortSignal): Promise<Page> {
  const range = prefix === ""
    ? { startkey: from === "" ? undefined : JSON.stringify(from) }
    : { startkey: JSON.stringify(from || prefix), endkey: JSON.stringify(prefix + "\ufff0") };
  const names = await json<string[]>("_all_dbs" + query({ ...range, limit: pageSize + 1 }), { signal });
  const shown = names.slice(0, pageSize);
  if (shown.length === 0) return { rows: [] };
  const infos = await json<{ key: string; info?: Info }[]>("_dbs_info", {
    method: "POST",
    body: JSON.stringify({ keys: shown }),
    signal,
  });
  const of = new Map(infos.map((i) => [i.key, i.info]));
  return { rows: shown.map((name) => ({ name, info: of.get(name) })), next: names[pageSize] };
}

export function Databases({ place, user }: { place: Place; user: User }) {
  const from = place.params.get("from") ?? "";
  const prefix = place.params.get("name") ?? "";
  const admin = user.roles.includes("_admin");
  const concerns = (db: string, cameOrWent: boolean) => {
    const { rows = [], next } = page.value ?? {};
    return page.loading || rows.some((r) => r.name === db) || (cameOrWent && db >= from && db.startsWith(prefix) && (next === undefined || db < next));
  };
  const busy = () => page.loading;
  const again = () => page.problem && isRefusal(page.problem) || page.again();
  const { ready, broken } = useDatabaseEvents(admin, { concerns, again, busy });
  const page = useLoad((signal) => (ready ? load(from, prefix, signal) : new Promise<Page>(() => {})), [from, prefix, user.name, ready]);
  const [making, setMaking] = useState(false);
  return (
    <main>
      <header class="bar">
        <Title text="Databases">Databases</Title>
        <input
          type="search"
          aria-label="Databases whose names begin with"
          placeholder="name begins with …"
          value={prefix}
          spellcheck={false}
          onInput={(e) => {
            const to = link([], { name: e.currentTarget.value || undefined });
            history.replaceState(null, "", to);
            dispatchEvent(new HashChangeEvent("hashchange"));
          }}
        />
        {admin && <button type="button" class="main" onClick={() => setMaking(true)}>New database</button>}
      </header>
      {page.problem && <Refusal of={page.problem} again={page.again} />}
      {broken !== undefined && !page.problem && <p class="note" role="status">What changes is not shown at the moment: {visible(broken)}</p>}
      {page.value && page.value.rows.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="List of databases">
        <table aria-busy={page.loading}>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col" class="number">Documents</th>
              <th scope="col" class="number">Deleted</th>
              <th scope="col" class="number">Size</th>
              <th scope="col" class="number">Shards × copies</th>
              <th scope="col">Kind</th>
            </tr>
          </thead>
          <tbody>
            {page.value.rows.map(({ name, info }) => (
              <tr key={name}>
                <th scope="row">
                  <a href={link(["db", name])}><Name of={name} /></a>
                </th>
                {info ? (
                  <>
                    <td class="number">{count(info.doc_count)}</td>
                    <td class="number">{count(info.doc_del_count)}</td>
                    <td class="number" title={`${count(info.sizes.active)} bytes of content, ${count(info.sizes.file)} on disk`}>
                      {bytes(info.sizes.file)}
                    </td>
                    <td class="number">{info.cluster.q} × {info.cluster.n}</td>
                    <td>{info.props.partitioned ? "partitioned" : ""}</td>
                  </>
                ) : (
                  <td colSpan={5} class="quiet">cannot be read now</td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
        </div>
      )}
      {page.value?.rows.length === 0 && !page.loading && (
        <p class="quiet">{prefix ? "No database has a name that begins so." : "There is no database yet."}</p>
      )}
      {!page.value && page.loading && <p class="quiet" role="status">Loading …</p>}
      <nav class="pages" aria-label="Pages">
        {from !== "" && <a href={link([], { name: prefix || undefined })}>First page</a>}
        {page.value?.next !== undefined && (
          <a href={link([], { name: prefix || undefined, from: page.value.next })}>Next page</a>
        )}
      </nav>
      {making && <NewDatabase close={() => setMaking(false)} />}
    </main>
  );
}

function NewDatabase({ close }: { close: () => void }) {
  const [problem, setProblem] = useState<Problem>();
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    const fields = new FormData(e.currentTarget as HTMLFormElement);
    const given = (name: string) => String(fields.get(name) ?? "") || undefined;
    const name = given("name") ?? "";
    try {
      const options = query({ q: given("q"), n: given("n"), partitioned: fields.has("partitioned") ? true : undefined });
      await json(path(name) + options, { method: "PUT" });
      close();
      go(link(["db", name]));
    } catch (e) {
      setProblem(asProblem(e));
    }
  };
  return (
    <Dialog title="New database" close={close}>
      <form onSubmit={submit}>
        <label>
          Name <input name="name" required spellcheck={false} autocapitalize="none" aria-describedby="name-rule" />
        </label>
        <p id="name-rule" class="quiet">
          A lower-case letter, then lower-case letters, digits and <code>_ $ ( ) + - /</code>
        </p>
        <details>
          <summary>Shards and copies</summary>
          <label>
            Shards (q) <input name="q" type="number" min="1" placeholder="as configured" />
          </label>
          <label>
            Copies (n) <input name="n" type="number" min="1" placeholder="as configured" />
          </label>
          <label class="check">
            <input name="partitioned" type="checkbox" /> Partitioned: ids begin with a partition and a colon
          </label>
        </details>
        {problem && <Refusal of={problem} />}
        <div class="buttons">
          <button type="button" onClick={close}>Cancel</button>
          <button class="main">Create</button>
        </div>
      </form>
    </Dialog>
  );
}
