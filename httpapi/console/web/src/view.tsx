// One view of a design document: its functions beside its rows.
import { useRef, useState } from "preact/hooks";
import { documentPath, json, path, text } from "./api";
import { Definition } from "./viewedit";
import { designOf } from "./designdoc";
import { get } from "./jsonparts";
import { useLoad } from "./load";
import { DatabaseNavigation } from "./navigation";
import { Name, Refusal, Title, visible } from "./parts";
import { capped } from "./rowpages";
import { Rows, RowTable } from "./viewrows";
import { link, type Place } from "./route";
import { sourceOf } from "./viewsource";
import { type Tried, namePrefix } from "./tryview";
import type { User } from "./session";

interface Loaded {
  design?: string; // none: a new view
  partitioned: boolean; // its rows are of one partition at a time
}

async function load(db: string, ddoc: string | undefined, signal: AbortSignal): Promise<Loaded> {
  if (ddoc === undefined) return { partitioned: false };
  const [design, info] = await Promise.all([
    text(documentPath(db, "_design/" + ddoc), { signal }),
    json<{ props: { partitioned?: boolean } }>(path(db), { signal }),
  ]);
  return { design, partitioned: info.props.partitioned === true && get(design, "options", "partitioned") !== "false" };
}

export function View({ place, user }: { place: Place; user: User }) {
  const [, db, ddoc, view] = place.segments as [string, string, string?, string?];
  const stored = useLoad((signal) => load(db, ddoc, signal), [db, ddoc, user.name]);
  const [turn, setTurn] = useState(0); // of the rows: another one after each save
  const [tried, setTried] = useState<Tried>();
  const definition = useRef<string>(undefined); // of the rows that are shown
  const { design, partitioned = false } = stored.value ?? {};
  definition.current ??= design;
  const now = view !== undefined && definition.current !== undefined ? sourceOf(definition.current, view) : undefined;
  return (
    <main class="full">
      <DatabaseNavigation db={db} kind="designs" user={user} />
      <header class="bar">
        <Title text={view ?? "New view"} />
        <span class="quiet">
          of <a href={link(["db", db])}><Name of={db} /></a>
          {ddoc !== undefined && <> in <a href={link(["doc", db, "_design/" + ddoc])}><Name of={ddoc} /></a></>}
        </span>
      </header>
      {stored.problem && <Refusal of={stored.problem} again={stored.again} />}
      {!stored.value && stored.loading && <p class="quiet" role="status">Loading …</p>}
      {stored.value && design !== undefined && designOf(design).query && (
        <p class="note">This is an index of Mango: see <a href={link(["mango", db])}>Query</a>.</p>
      )}
      {stored.value && (
        <div class="split">
          <Definition
            db={db}
            ddoc={ddoc}
            view={view}
            design={design}
            user={user}
            tried={setTried}
            saved={(text) => {
              definition.current = text;
              setTried(undefined);
              setTurn((n) => n + 1);
            }}
          />
          {tried && <Trial db={db} of={tried} close={() => setTried(undefined)} />}
          {!tried && ddoc !== undefined && view !== undefined && now && (
            <Rows place={place} user={user} db={db} ddoc={ddoc} view={view} reduces={now.reduce !== ""} partitioned={partitioned} turn={turn} />
          )}
          {!tried && !now && (
            <section class="rows" aria-label="Rows">
              <p class="quiet">{view === undefined ? "Its rows are shown here when it is saved." : "The design document has no view of this name. Save makes it."}</p>
            </section>
          )}
        </div>
      )}
    </main>
  );
}

/** Trial shows what a view that is not saved gives for some documents. */
function Trial({ db, of, close }: { db: string; of: Tried; close: () => void }) {
  return (
    <section class="rows" aria-label="Trial">
      <div class="note" role="status">
        <p>
          <b>A trial:</b> {of.documents} {of.documents === 1 ? "document" : "documents"}, {of.more ? `more than ${of.rows.length}` : of.rows.length}{" "}
          {of.rows.length === 1 ? "row" : "rows"}. Nothing is saved. A document for which the function throws has no rows.
        </p>
        {of.left !== undefined && <p>The database <b>{of.left}</b> could not be deleted: delete it, and any other {namePrefix}….</p>}
        <p><button type="button" onClick={close}>Close the trial</button></p>
      </div>
      {of.reduced !== undefined && <p>All reduced: <code>{visible(capped(of.reduced))}</code></p>}
      {of.rows.length > 0 ? <RowTable db={db} rows={of.rows} label="Rows of the trial" /> : <p class="quiet">No rows.</p>}
    </section>
  );
}
